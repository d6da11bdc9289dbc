"""JSON schema of the summary of a watch, from its types: `python -m servetop.reports.schema.watch_schema`."""

from __future__ import annotations

import json
from typing import Any

from servetop.analysis.summary.watch_types import WatchSummary
from servetop.reports.schema.summary_schema import object_schema

VERSION = "1.4"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""


def watch_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(WatchSummary, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:watch:{VERSION}",
        "title": "Summary of a watch (servetop watch --json, servetop summary --json)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(watch_schema(), indent=2))  # noqa: T201
