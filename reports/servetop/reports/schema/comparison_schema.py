"""JSON schema of a comparison, from its types: `python -m servetop.reports.schema.comparison_schema`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servetop.analysis.comparison.report_types import ComparisonReport
from servetop.reports.schema.summary_schema import object_schema

VERSION = "2.0"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""

_TEXT, _TEXTS, _NUMBER = (
    {"type": "string"},
    {"type": "array", "items": {"type": "string"}},
    {"type": ["number", "null"]},
)
_NAME = {"type": ["string", "null"]}
_MEASURED = {"anyOf": [{"$ref": "#/$defs/measured_difference"}, {"type": "null"}]}
_CHANGE = {"key": _TEXT, "baseline": _TEXT, "run": _TEXT}
_CHECK = {
    "exit_code": {"type": "integer"},
    "error": _NAME,
    "runs": _TEXTS,
    "baselines": _TEXTS,
    "warnings": _TEXTS,
    "changes": {"type": "array", "items": {"type": "object", "properties": _CHANGE, "required": list(_CHANGE)}},
    "without_counterpart": _TEXTS,
    "items": {"type": "array", "items": {"$ref": "#/$defs/check_item"}},
}
_OF_KINDS = {
    "measured": _MEASURED,
    "value": _NUMBER,
    "stage": {"type": ["integer", "null"]},
    "limit": _NUMBER,
    "bears_on": _TEXT,
}
"""Keys that depend on the kind of an item."""
_ITEM = {
    "kind": {"enum": ["max-regression", "threshold", "honesty"]},
    "name": _TEXT,
    "load": _NAME,
    "recording": _NAME,
    "outcome": {"enum": ["kept", "regression", "not met", "broken", "cannot tell", "not applicable"]},
    "decides": {"type": "boolean"},
    "text": _TEXT,
}
_PAIR = {
    "load": _TEXT,
    "measured": {"$ref": "#/$defs/measured_difference"},
    "pairs_needed": {"type": ["integer", "null"]},
    "differences": {"type": "array", "items": {"type": "number"}},
}
_PAIRS = {
    "end": _TEXT,
    "exit_code": {"type": "integer"},
    "error": _NAME,
    "pairs": {"type": "integer"},
    "seconds": {"type": "number"},
    "seconds_per_pair": {"type": "number"},
    "budget": {"type": "number"},
    "error_rate": {"type": "number"},
    "configurations": {"type": "object"},
    "engines_restarted": {"type": "boolean"},
    "recordings": _TEXT,
    "metrics": {"type": "array", "items": {"type": "object", "properties": _PAIR, "required": list(_PAIR)}},
    "not_measured": _TEXTS,
}


def _object(members: Mapping[str, Any], *, optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of an object with all of these members, and perhaps some of others."""
    properties = {**members, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(members), "additionalProperties": False}


def comparison_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(ComparisonReport, definitions)
    definitions |= {
        "check": _object(_CHECK),
        "check_item": _object(_ITEM, optional=_OF_KINDS),
        "pairs": _object(_PAIRS),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:comparison:{VERSION}",
        "title": "Comparison of configurations (servetop compare --json); $defs has check and pairs (run-pairs)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(comparison_schema(), indent=2))  # noqa: T201
