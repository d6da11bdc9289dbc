"""Loads which stages of a recording are attempts at the same cell, and which of them count."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.analysis.cells.attempts import CellAttempt, StageHistory, StageTally, cell_attempts, session_starts
from servetop.analysis.failure_reasons import FAILED
from servetop.core.events import RequestStatus, StageChange
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader


def load_attempts(
    reader: RecordingReader, ticks: Sequence[Tick], *, max_failures: str | None = None
) -> dict[int, CellAttempt]:
    """Return the attempts by number of the stage; `max_failures` replaces the limit of the recorded run."""
    stages = reader.stages()
    return cell_attempts(
        StageHistory(
            stages=stages,
            tallies=_tallies(reader, stages, ticks),
            notes=reader.notes(),
            commands=reader.commands(),
            end=reader.end,
            max_failures=reader.header.config.max_failures if max_failures is None else max_failures,
        )
    )


def _tallies(reader: RecordingReader, stages: Sequence[StageChange], ticks: Sequence[Tick]) -> dict[int, StageTally]:
    counts = reader.request_counts()
    ends = stage_ends(stages, session_starts(reader.notes()))
    tallies: dict[int, StageTally] = {}
    for index, end in ends.items():
        by_status = counts.get(index, {})
        last = next((tick for tick in reversed(ticks) if tick.end <= end), None)
        gauges = None if last is None else last.client.gauges
        tallies[index] = StageTally(
            ok=by_status.get(RequestStatus.OK, 0),
            failed=sum(by_status.get(status, 0) for status in FAILED),
            left=0 if gauges is None else gauges.in_flight + gauges.queued,
            until=min(end, -math.inf if last is None else last.end) if math.isinf(end) else end,
        )
    return tallies


def stage_ends(stages: Sequence[StageChange], resumed: Sequence[float]) -> dict[int, float]:
    """Return when each stage ended, by number: with the next stage or with its session; inf for the last one."""
    ends: dict[int, float] = {}
    following = [*(stage.at for stage in stages), math.inf][1:]
    for stage, after in zip(stages, following, strict=True):
        ends[stage.index] = min([after, *(at for at in resumed if at >= stage.at)])
    return ends
