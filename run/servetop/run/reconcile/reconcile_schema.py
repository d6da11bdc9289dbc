"""JSON schema of the report of a reconciliation, from its types: `python -m …reconcile_schema`."""

from __future__ import annotations

import json
from typing import Any

from servetop.reports.schema.summary_schema import object_schema
from servetop.run.reconcile.reconcile_report import ReconciliationReport

VERSION = "1.0"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""


def reconcile_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(ReconciliationReport, definitions)
    outcome = {
        "schema_version": {"const": VERSION},
    }
    root["properties"] = {**outcome, **root["properties"]}
    root["required"] = [*outcome, *root["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:reconcile:{VERSION}",
        "title": "Report of a reconciliation (servetop reconcile --json)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(reconcile_schema(), indent=2))  # noqa: T201
