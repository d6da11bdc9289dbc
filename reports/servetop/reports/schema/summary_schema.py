"""JSON schema of the summary, derived from its types: `python -m servetop.reports.schema.summary_schema`."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from servetop.analysis.summary.summary_types import (
    METRICS,
    REASONING_METRICS,
    LatencySummary,
    RunSummary,
    SteadySummary,
    statistic_keys,
)

VERSION = "1.16"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""
_STATISTIC = rf"^(mean|median|std|p\d+(\.\d+)?)_({'|'.join((*METRICS, *REASONING_METRICS))})_ms$"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def summary_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(RunSummary, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:summary:{VERSION}",
        "title": "Summary of a run (servetop summary --json)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def object_schema(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass; the keys of flat fields are added to it."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    patterns: dict[str, Any] = {}
    free = False
    hints = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        if "internal" in each.metadata:
            continue
        inner, optional = _without_none(hints[each.name])
        if "flat" not in each.metadata:
            properties[each.name] = _field(hints[each.name], each.metadata, definitions)
            required += [] if "omitted" in each.metadata else [each.name]
        elif typing.get_origin(inner) is Mapping:
            of_latencies = typing.get_args(inner)[1] is LatencySummary
            patterns |= {_STATISTIC: {"type": ["number", "null"]}} if of_latencies else {}
            required += statistic_keys(METRICS) if of_latencies else []
            free = free or not of_latencies
        else:
            nested = object_schema(inner, definitions)
            nullable = kind is SteadySummary
            properties |= _nullable(nested["properties"]) if nullable else nested["properties"]
            patterns |= nested.get("patternProperties", {})
            required += [] if optional else nested["required"]
            free = free or nested["additionalProperties"]
    pattern_properties = {"patternProperties": patterns} if patterns else {}
    return {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": properties,
        **pattern_properties,
        "required": required,
        "additionalProperties": free,
    }


def _field(hint: Any, metadata: Mapping[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "parsed" in metadata:
        return {"type": "object"}
    schema = _type(hint, definitions)
    if schema.get("type") == "array" and _without_none(hint)[1] and "omitted" not in metadata:
        schema["type"] = ["array", "null"]
    return {"anyOf": [schema, {"const": "inf"}]} if "rate" in metadata else schema


def _type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    inner, optional = _without_none(hint)
    if typing.get_origin(inner) is tuple:
        items = _type(typing.get_args(inner)[0], definitions)
        return {"type": "array", "items": items}
    if typing.get_origin(inner) is Mapping:
        return {"type": "object", "additionalProperties": _type(typing.get_args(inner)[1], definitions)}
    if dataclasses.is_dataclass(inner) and isinstance(inner, type):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", inner.__name__).lower()
        definitions.setdefault(name, object_schema(inner, definitions))
        return {"$ref": f"#/$defs/{name}"}
    if isinstance(inner, type) and issubclass(inner, StrEnum):
        values = [str(each) for each in inner]
        return {"enum": [*values, None] if optional else values}
    return {"type": [_PLAIN[inner], "null"] if optional else _PLAIN[inner]}


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether it was optional."""
    members = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    others = [each for each in members if each is not types.NoneType]
    return others[0], len(others) < len(members)


def _nullable(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same properties, each of which may be null, for a window that does not exist."""
    return {
        name: each
        if "type" not in each or "null" in each["type"] or each["type"] == "array"
        else {**each, "type": [each["type"], "null"]}
        for name, each in properties.items()
    }


if __name__ == "__main__":
    print(json.dumps(summary_schema(), indent=2))  # noqa: T201
