"""JSON schema of a comparison, from its types: `python -m servetop.reports.schema.comparison_schema`."""

from __future__ import annotations

import json
from typing import Any

from servetop.analysis.comparison.report_types import ComparisonReport
from servetop.reports.schema.summary_schema import object_schema

VERSION = "1.2"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""


def comparison_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(ComparisonReport, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:comparison:{VERSION}",
        "title": "Comparison of configurations (servetop compare --json)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(comparison_schema(), indent=2))  # noqa: T201
