"""Reads and validates the header, the only row of table `run`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servetop.core.errors import RecordingError, UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.format import schema
from servetop.recordings.format.header import decode_header
from servetop.recordings.format.run_row import end_problem, header_problem, without_end
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
    if row["tick_seconds"] not in (None, TICK_SECONDS):
        raise RecordingError(
            f"{path} has ticks of {row['tick_seconds']:g} s, and this version of servetop reads ticks of"
            f" {TICK_SECONDS:g} s: open it with the version that wrote it"
        )
    problem = end_problem(row)
    if problem is not None:
        tables.record_damage(f"its end is invalid: {problem}")
        return without_end(row)
    return row


def decode_run_header(row: Mapping[str, Any], tables: TableReader, path: Path) -> RunHeader:
    """Decode the row's header; RecordingError if it is damaged."""
    recorded = bool(tables.columns_of(schema.ENGINE_SERIES.name))
    try:
        return dataclasses.replace(decode_header(row), has_engine_series=recorded)
    except (ValueError, TypeError, UsageError) as error:
        raise RecordingError(f"{path} is damaged: its header cannot be decoded ({error})") from error
