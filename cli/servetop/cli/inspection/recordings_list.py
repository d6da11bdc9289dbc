"""`servetop ls`: the list of recordings, on the terminal or as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from servetop.cli.tables import out_first_that_fits
from servetop.core.errors import ExitCode
from servetop.core.interfaces.recording_store import RecordingInfo, RecordingState
from servetop.core.text import formats
from servetop.recordings.library.catalog import list_recordings
from servetop.recordings.library.paths import recordings_folder
from servetop.reports.tables import cell, light_table
from servetop.run import console

LEFT_OUT = ("model", "engine", "peak tok/s", "requests")
"""Columns that a narrow terminal omits, in this order: as a rule the name contains the first two."""

WATCH = "watch"
"""In place of the requests of a watch, which has none of its own."""


def print_recordings(folder: Path | None, *, as_json: bool) -> int:
    """Print all recordings of a folder, newest first; OK also when there are none."""
    where = folder or recordings_folder()
    recordings = list_recordings(where)
    if as_json:
        console.out_json([dataclasses.asdict(each) for each in recordings], default=str)
    elif not recordings:
        console.out(f"no recordings in {where} yet: a run of servetop records one")
    else:
        print_list(recordings)
        console.out(*(each.problem for each in recordings if each.problem))
        if console.is_terminal():
            console.out(next_step(None if folder is None else recordings[0].path))
    return int(ExitCode.OK)


def next_step(path: Path | None) -> str:
    """Return a line with the commands that take a recording, by name, or by a path such as this one."""
    how = "a label or the start of a name is enough" if path is None else f"NAME is a path, such as {path}"
    return f"Next: servetop replay NAME · summary NAME · report NAME · compare NAME NAME ({how})"


def print_list(recordings: Sequence[RecordingInfo]) -> None:
    """Print one line for each recording, with as many columns as the terminal has room for."""
    out_first_that_fits(*(_list_table(recordings, without=LEFT_OUT[:count]) for count in range(len(LEFT_OUT) + 1)))


def _list_table(recordings: Sequence[RecordingInfo], *, without: Sequence[str]) -> Table:
    """Return a table whose names are never cut off or folded, so that they can be copied."""
    rows = [_list_row(each) for each in recordings]
    columns = [name for name in rows[0] if name not in without]
    table = light_table(*columns)
    for name, column in zip(columns, table.columns, strict=True):
        column.no_wrap, column.justify = True, "left" if name in ("recording", "engine", "model", "state") else "right"
    for row in rows:
        table.add_row(*(cell(row[name]) for name in columns))
    return table


def _list_row(info: RecordingInfo) -> dict[str, str]:
    return {
        "recording": info.path.stem,
        "engine": info.engine or formats.UNKNOWN,
        "model": info.model or formats.UNKNOWN,
        "time": formats.clock(info.duration or 0.0),
        "requests": WATCH if info.watch else formats.exact(info.requests),
        "peak tok/s": formats.UNKNOWN if info.watch else formats.count(info.peak_output_tokens_per_s),
        "state": _state(info),
    }


def _state(info: RecordingInfo) -> str:
    if info.problem and info.state is not RecordingState.UNREADABLE:
        return "damaged"
    if info.exit_code is None:
        return str(info.state)
    return f"exit {info.exit_code}" if info.exit_code else "ok"
