"""JSON schema of watches side by side, from its types: `python -m servetop.reports.schema.watch_comparison_schema`."""

from __future__ import annotations

import json
from typing import Any

from servetop.analysis.comparison.watch_comparison import WatchComparison
from servetop.reports.schema.summary_schema import object_schema

VERSION = "1.2"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""


def watch_comparison_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(WatchComparison, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:watch-comparison:{VERSION}",
        "title": "Watches side by side (servetop compare --json of watches)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(watch_comparison_schema(), indent=2))  # noqa: T201
