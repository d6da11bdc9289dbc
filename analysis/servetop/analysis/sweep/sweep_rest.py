"""What a sweep has still to measure at one time: cells, and how long they will take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from servetop.analysis.cells.attempts import session_starts
from servetop.analysis.cells.stage_load import CellKey, StageLoad
from servetop.analysis.diagnosis.run_record import restarts
from servetop.core.config import StageConfig
from servetop.core.config_values.planned_seconds import planned_seconds
from servetop.core.events import Note, StageChange
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.interfaces.stage_row import planned_row
from servetop.core.text import formats
from servetop.core.text.counted import counted

_Plan = Mapping[CellKey, float | None]
"""Planned seconds by cell; None if they depend on the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRest:
    """How many cells of a sweep are still to be measured, and how long that takes."""

    cells: int
    """Without the one that is being measured."""
    seconds: float | None
    """With the rest of the cell that is being measured; None if the length of a cell is unknown."""

    @property
    def text(self) -> str:
        """In words, such as `3 cells to come, about 4:10 left`."""
        left = "" if self.seconds is None else f", about {formats.clock(self.seconds)} left"
        cells = f"{counted(self.cells, 'cell')} to come" if self.cells else "last cell"
        return f"{cells}{left}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """A cell whose measurement has started."""

    key: CellKey
    start: float
    end: float | None
    """When the next one of the same session began, or before it a restart of the engine; None for the last one."""
    failed: bool
    is_earlier: bool
    """It is of an earlier session."""

    @property
    def to_repeat(self) -> bool:
        """Whether it failed, or was cut short, in an earlier session."""
        return self.is_earlier and (self.failed or self.end is None)


def sweep_rest(
    planned: Sequence[StageConfig],
    stages: Sequence[StageChange],
    *,
    skipped: Sequence[SkippedCell] = (),
    notes: Sequence[Note] = (),
    at: float,
) -> SweepRest:
    """Return what is left at `at`; rows, skipped cells and notes are those recorded until then.

    A cell lasts as long as planned, times the ratio by which those measured so far exceeded their plans; without a plan
    as long as they did on average. Restarts of the engine are added: of the cells to come, as many need one as those
    that were measured after another batch size, other settings or another repeat, and each takes as long as the others.
    """
    plan = {CellKey.of(planned_row(cell)): planned_seconds(cell) for cell in planned if not cell.warmup}
    begun = [note.at for note in restarts(notes)]
    started = _started(stages, plan, seams=session_starts(notes), begun=begun)
    done = {each.key for each in started if not each.to_repeat}
    gone = set(map(_skipped_key, skipped))
    left = [seconds for key, seconds in plan.items() if key not in done | gone]
    taken = [
        (plan.get(each.key), each.end - each.start) for each in started if each.end is not None and not each.failed
    ]
    current = next(
        (each for each in started[-1:] if each.end is None and not each.failed and not each.is_earlier), None
    )
    expected = [_expected(seconds, taken) for seconds in left]
    if current is not None:
        whole = _expected(plan.get(current.key), taken)
        expected.append(None if whole is None else max(0.0, whole - (at - current.start)))
    expected.append(_restarting(started, [key for key in plan if key not in done | gone], begun, at=at))
    known = [seconds for seconds in expected if seconds is not None]
    return SweepRest(cells=len(left), seconds=sum(known) if len(known) == len(expected) else None)


def _expected(planned: float | None, taken: Sequence[tuple[float | None, float]]) -> float | None:
    """Return how long a cell will last; `taken` are the planned and the actual seconds of others."""
    pairs = [(plan, actual) for plan, actual in taken if plan]
    if planned is not None:
        return planned * (sum(actual for _, actual in pairs) / sum(plan for plan, _ in pairs) if pairs else 1.0)
    return sum(actual for _, actual in taken) / len(taken) if taken else None


def _restarting(started: Sequence[_Started], left: Sequence[CellKey], begun: Sequence[float], *, at: float) -> float:
    """Return how long restarts of the engine will take, the rest of one in progress included; 0 before the first."""
    spans = [
        (each.end, following.start)
        for each, following in pairwise(started)
        if each.end is not None and each.end in begun
    ]
    if not spans:
        return 0.0
    mean = sum(until - since for since, until in spans) / len(spans)
    changes = sum(_engine_of(each.key) != _engine_of(following.key) for each, following in pairwise(started))
    last = started[-1]
    order = [last.key, *left]
    coming = sum(_engine_of(before) != _engine_of(after) for before, after in pairwise(order))
    waited = min(at - last.end, mean) if last.end is not None and last.end in begun else 0.0
    return max(0.0, mean * min(1.0, len(spans) / max(changes, 1)) * coming - waited)


def _engine_of(key: CellKey) -> tuple[object, ...]:
    """Return what may need another start of the engine."""
    return key.load.max_num_seqs, key.load.settings, key.repeat


def _started(
    stages: Sequence[StageChange], plan: _Plan, *, seams: Sequence[float], begun: Sequence[float]
) -> list[_Started]:
    loaded = [each for each in stages if each.request_rate is not None and not each.warmup]
    failed = {each.index for each in loaded if each.failure is not None}
    rows = list({each.index: each for each in reversed(loaded)}.values())[::-1]
    sessions = [sum(seam <= row.at for seam in seams) for row in rows]
    ends = [
        _end(row, rows[place + 1] if sessions[place + 1 : place + 2] == [session] else None, begun, seams)
        for place, (row, session) in enumerate(zip(rows, sessions, strict=True))
    ]
    return [
        _Started(
            key=_planned_key(CellKey.of(row), plan),
            start=row.at,
            end=end,
            failed=row.index in failed,
            is_earlier=session < len(seams),
        )
        for row, end, session in zip(rows, ends, sessions, strict=True)
    ]


def _end(
    row: StageChange, following: StageChange | None, begun: Sequence[float], seams: Sequence[float]
) -> float | None:
    """Return when a cell ended: at the restart of the engine, or when the next one of its session began."""
    session_end = min((seam for seam in seams if seam > row.at), default=math.inf)
    until = session_end if following is None else following.at
    return next((each for each in begun if row.at < each < until), None if following is None else following.at)


def _planned_key(key: CellKey, plan: _Plan) -> CellKey:
    """Return the key of the plan; a cell without a batch size is measured with the engine's."""
    return key if key in plan else replace(key, load=replace(key.load, max_num_seqs=None))


def _skipped_key(cell: SkippedCell) -> CellKey:
    load = StageLoad(
        request_rate=cell.request_rate,
        max_concurrency=cell.max_concurrency,
        max_num_seqs=cell.max_num_seqs,
        settings=cell.settings,
    )
    return CellKey(load=load, repeat=cell.repeat)
