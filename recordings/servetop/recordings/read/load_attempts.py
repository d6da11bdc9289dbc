"""Loads which stages of a recording are attempts at the same cell, and which of them count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from servetop.analysis.cells.attempts import CellAttempt, StageHistory, StageTally, cell_attempts, session_starts
from servetop.analysis.failure_reasons import FAILED
from servetop.core.events import RequestStatus, RunEnd, StageChange
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.recordings.read.reader import RecordingReader


def load_attempts(
    reader: RecordingReader,
    ticks: Sequence[Tick] | None,
    *,
    max_failures: str | None = None,
    end: RunEnd | None = None,
) -> dict[int, CellAttempt]:
    """Return the attempts by number of the stage; `max_failures` replaces the limit of the recorded run.

    Of all ticks only the last one of each stage is needed, which is read without `ticks`. An `end` that is not recorded
    yet replaces the recorded one.
    """
    stages, notes = reader.stages(), reader.notes()
    ends = {change.index: end for change, end in with_ends(stages, session_starts(notes))}
    return cell_attempts(
        StageHistory(
            stages=stages,
            tallies=_tallies(reader, ends, ticks),
            notes=notes,
            commands=reader.commands(),
            end=end or reader.end,
            max_failures=reader.header.config.max_failures if max_failures is None else max_failures,
        )
    )


def _tallies(reader: RecordingReader, ends: Mapping[int, float], ticks: Sequence[Tick] | None) -> dict[int, StageTally]:
    counts = reader.request_counts()
    tallies: dict[int, StageTally] = {}
    for index, end in ends.items():
        by_status = counts.get(index, {})
        last = _read_last_tick(reader, end) if ticks is None else _last_tick(ticks, end)
        gauges = None if last is None else last.client.gauges
        tallies[index] = StageTally(
            ok=by_status.get(RequestStatus.OK, 0),
            failed=sum(by_status.get(status, 0) for status in FAILED),
            left=0 if gauges is None else gauges.in_flight + gauges.queued,
            until=min(end, -math.inf if last is None else last.end) if math.isinf(end) else end,
        )
    return tallies


def _last_tick(ticks: Sequence[Tick], end: float) -> Tick | None:
    """Return the last tick that ended by a time."""
    return next((tick for tick in reversed(ticks) if tick.end <= end), None)


def _read_last_tick(reader: RecordingReader, end: float) -> Tick | None:
    """Return the same from the file; of a damaged one, which may lack ticks before it, all ticks are read."""
    by_then, number = ("number <= ?", (end / TICK_SECONDS - 1,)) if math.isfinite(end) else ("", ())
    found = next(reader.tables.rows("tick", ("max(number)",), where=by_then, parameters=number), (None,))[0]
    if reader.damage is None and isinstance(found, int):
        return _last_tick(reader.past_ticks(found, found), end)
    return _last_tick(reader.ticks(), end)


def with_ends(changes: Sequence[StageChange], resumed: Sequence[float]) -> list[tuple[StageChange, float]]:
    """Return each change with the time of the next one, or of the start of the next session; inf for the last one."""
    following = [*(change.at for change in changes), math.inf][1:]
    return [
        (change, min([end, *(at for at in resumed if at >= change.at)]))
        for change, end in zip(changes, following, strict=True)
    ]
