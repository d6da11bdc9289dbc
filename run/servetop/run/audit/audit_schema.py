"""JSON schema of the report of an audit, from its types: `python -m servetop.run.audit.audit_schema`."""

from __future__ import annotations

import json
from typing import Any

from servetop.reports.schema.summary_schema import object_schema
from servetop.run.audit.audit_report import AuditReport

VERSION = "1.0"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""


def audit_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(AuditReport, definitions)
    outcome = {
        "schema_version": {"const": VERSION},
        "exit_code": {"type": "integer"},
        "error": {"type": ["string", "null"]},
    }
    root["properties"] = {**outcome, **root["properties"]}
    root["required"] = [*outcome, *root["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:audit:{VERSION}",
        "title": "Report of an audit (servetop audit --json)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(audit_schema(), indent=2))  # noqa: T201
