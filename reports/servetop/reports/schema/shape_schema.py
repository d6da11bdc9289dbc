"""JSON schema of the report of a recorded load, from its types: `python -m servetop.reports.schema.shape_schema`."""

from __future__ import annotations

import json
from typing import Any

from servetop.reports.schema.summary_schema import object_schema
from servetop.workload.shape.shape_report import ShapeReport

VERSION = "1.0"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""


def shape_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(ShapeReport, definitions)
    root["properties"] = {
        "schema_version": {"const": VERSION},
        **root["properties"],
        "replay": {"type": ["string", "null"]},
    }
    root["required"] = ["schema_version", *root["required"], "replay"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:shape:{VERSION}",
        "title": "Report of a recorded load (servetop shape --json)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(shape_schema(), indent=2))  # noqa: T201
