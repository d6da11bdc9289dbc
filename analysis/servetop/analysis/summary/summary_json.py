"""The JSON form of a summary, for `--json` and the keys of thresholds."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from servetop.analysis.summary.summary_types import (
    REQUEST_KEYS,
    LatencySummary,
    Measurements,
    RunSummary,
    SteadySummary,
)

_SET_UP_ENDS_BEFORE = "measured"
_AFTER_THE_END = ("not_recorded",)


def summary_json(summary: RunSummary | Measurements) -> dict[str, Any]:
    """Return a summary as dictionaries, lists, strings and numbers, as specified by docs/schema/summary.json."""
    return plain_object(summary)


def set_up_json(summary: RunSummary) -> dict[str, Any]:
    """Return set-up, error and recording only, for a run that failed before its first request."""
    names = [each.name for each in dataclasses.fields(summary)]
    kept = [*names[: names.index(_SET_UP_ENDS_BEFORE)], *_AFTER_THE_END]
    return {key: value for name in kept for key, value in _members(summary, name).items()}


def plain_object(value: Any) -> dict[str, Any]:
    """Return the JSON object of any dataclass; a later key replaces the value of an earlier one."""
    members: dict[str, Any] = {}
    for each in dataclasses.fields(value):
        members.update(_members(value, each.name))
    return members


def _members(owner: Any, name: str) -> dict[str, Any]:
    """Return the keys and values of one field."""
    metadata = next(each.metadata for each in dataclasses.fields(owner) if each.name == name)
    value = getattr(owner, name)
    if "internal" in metadata or (value is None and "omitted" in metadata):
        return {}
    if "flat" in metadata:
        return _flat(owner, value)
    if "rate" in metadata and value is not None and math.isinf(value):
        return {name: "inf"}
    if "parsed" in metadata and value is not None:
        return {name: json.loads(value)}
    return {name: _value(value)}


def _flat(owner: Any, value: Any) -> dict[str, Any]:
    if value is None and isinstance(owner, SteadySummary):
        return dict.fromkeys(REQUEST_KEYS)
    if not isinstance(value, Mapping):
        return plain_object(value)
    members: dict[str, Any] = {}
    for name, each in value.items():
        latency = each.items() if isinstance(each, LatencySummary) else {}
        members |= {f"{statistic}_{name}_ms": number for statistic, number in latency.items()} or {name: each}
    return members


def _value(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return plain_object(value)
    return [_value(each) for each in value] if isinstance(value, tuple) else value
