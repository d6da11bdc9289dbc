"""Validates the only row of table `run`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from servetop.recordings.format.column_bounds import MAX_RUN_SECONDS
from servetop.recordings.format.liveness import MAX_PID
from servetop.recordings.format.schema import RUN_COLUMNS

_TYPES: Mapping[str, type] = {"INTEGER": int, "REAL": float, "TEXT": str}
_END = ("end_at", "exit_code", "end_reason", "steady", "headline")
_REQUIRED = ("origin_ns", "wall_epoch_s", "config")
_MAX_UNIX_TIME = 253_000_000_000
"""Unix time in the year 9987; `datetime` supports little more."""
_MAX_NS = 1 << 62


def header_problem(row: Mapping[str, Any]) -> str | None:
    """Return what is invalid in the header's columns; None if they are valid."""
    for name in [name for name in RUN_COLUMNS if name not in _END]:
        value = row.get(name)
        if not _is_of_type(name, value) or (value is None and name in _REQUIRED):
            return f"{name} is {value!r:.40}"
    if not 0 <= row["wall_epoch_s"] <= _MAX_UNIX_TIME or abs(row["origin_ns"]) > _MAX_NS:
        return f"its start is {row['wall_epoch_s']!r:.40}"
    pid = row.get("pid")
    return None if pid is None or 0 < pid <= MAX_PID else f"pid is {pid!r:.40}"


def end_problem(row: Mapping[str, Any]) -> str | None:
    """Return what is invalid in the columns of the run's end; None if they are valid."""
    for name in _END:
        if not _is_of_type(name, row.get(name)):
            return f"{name} is {row.get(name)!r:.40}"
    at, code = row.get("end_at"), row.get("exit_code")
    if at is not None and not 0 <= at <= MAX_RUN_SECONDS:
        return f"end_at is {at!r:.40}"
    return f"exit_code is {code!r:.40}" if code is not None and not 0 <= code <= 255 else None


def without_end(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with NULL for the run's end."""
    return {**row, **dict.fromkeys(_END)}


def _is_of_type(name: str, value: Any) -> bool:
    if value is None:
        return True
    return type(value) is _TYPES[RUN_COLUMNS[name]] and not (isinstance(value, float) and math.isnan(value))
