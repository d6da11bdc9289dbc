"""Reads and validates the header, the only row of table `run`."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servetop.core.errors import RecordingError, UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.merged.merged_sample import MERGED_SECONDS
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.format import schema
from servetop.recordings.format.column_bounds import MAX_RUN_SECONDS
from servetop.recordings.format.header import decode_header
from servetop.recordings.format.liveness import MAX_PID
from servetop.recordings.read.table_reader import TableReader


def read_run_row(tables: TableReader, path: Path) -> dict[str, Any]:
    """Read the row, without its end if that is damaged; RecordingError if the header is missing or invalid,
    or if the ticks have another length than those of this version.
    """
    rows = list(itertools.islice(tables.row_dicts("run", tuple(schema.RUN_COLUMNS)), 1))
    if not rows:
        raise RecordingError(f"{path} is damaged: its header is lost, so nothing in it can be read")
    row = dict.fromkeys(schema.RUN_COLUMNS) | rows[0]
    problem = header_problem(row)
    if problem is not None:
        raise RecordingError(f"{path} is damaged: its header is invalid ({problem})")
    if row["tick_seconds"] not in (None, TICK_SECONDS, MERGED_SECONDS):
        raise RecordingError(
            f"{path} has ticks of {row['tick_seconds']:g} s, and this version of servetop reads ticks of"
            f" {TICK_SECONDS:g} s: open it with the version that wrote it"
        )
    problem = end_problem(row)
    if problem is not None:
        tables.record_damage(f"its end is invalid: {problem}")
        return {**row, **dict.fromkeys(_END)}
    return row


def decode_run_header(row: Mapping[str, Any], tables: TableReader, path: Path) -> RunHeader:
    """Decode the row's header; RecordingError if it is damaged."""
    recorded = bool(tables.columns_of(schema.ENGINE_SERIES.name))
    try:
        return dataclasses.replace(decode_header(row), has_engine_series=recorded)
    except (ValueError, TypeError, UsageError) as error:
        raise RecordingError(f"{path} is damaged: its header cannot be decoded ({error})") from error


_TYPES: Mapping[str, type] = {"INTEGER": int, "REAL": float, "TEXT": str}
_END = ("end_at", "exit_code", "end_reason", "steady", "headline")
_REQUIRED = ("origin_ns", "wall_epoch_s", "config")
_MAX_UNIX_TIME = 253_000_000_000
"""Unix time in the year 9987; `datetime` supports little more."""
_MAX_NS = 1 << 62


def header_problem(row: Mapping[str, Any]) -> str | None:
    """Return what is invalid in the header's columns; None if they are valid."""
    for name in [name for name in schema.RUN_COLUMNS if name not in _END]:
        value = row.get(name)
        if not _is_of_type(name, value) or (value is None and name in _REQUIRED):
            return f"{name} is {value!r:.40}"
    if not 0 <= row["wall_epoch_s"] <= _MAX_UNIX_TIME or abs(row["origin_ns"]) > _MAX_NS:
        return f"its start is {row['wall_epoch_s']!r:.40}"
    if not 0 <= (row.get("kept_from") or 0.0) <= MAX_RUN_SECONDS:
        return f"kept_from is {row['kept_from']!r:.40}"
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


def _is_of_type(name: str, value: Any) -> bool:
    if value is None:
        return True
    return type(value) is _TYPES[schema.RUN_COLUMNS[name]] and not (isinstance(value, float) and math.isnan(value))
