"""The common clock of a run and its baseline: stages of equal load begin together."""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.events import StageChange

_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpan:
    """One stage with a load: from its first change to the next stage or the end of the run, seconds."""

    index: int
    start: float
    until: float
    """inf for the stage that is not over yet."""
    load: tuple[float | None, int | None, bool, str | None]
    """Request rate, concurrency limit, and whether it is a warm-up."""
    batch: int | None = None
    """The engine's batch size."""


@dataclass(frozen=True, kw_only=True)
class AlignedSpan:
    """A part of the run, seconds, and how far ahead the baseline's clock is then."""

    start: float
    until: float
    ahead: float
    baseline_until: float
    """End of the part in the baseline, on its own clock."""


@dataclass(frozen=True, kw_only=True)
class StageClock:
    """What the baseline did at a time of the run; times without a counterpart are NaN."""

    spans: tuple[AlignedSpan, ...] = ()

    @cached_property
    def _starts(self) -> FloatArray:
        return np.array([span.start for span in self.spans])

    def baseline_times(self, times: FloatArray) -> FloatArray:
        """The baseline's time for each time of the run; a time at which a stage starts belongs to the one before."""
        if not self.spans:
            return np.full(times.shape, np.nan)
        found = np.searchsorted(self._starts, times - _NEGLIGIBLE) - 1
        columns = np.array([(span.until, span.ahead, span.baseline_until) for span in self.spans])
        until, ahead, ends = columns[np.maximum(found, 0)].T
        known = (found >= 0) & (times <= until + _NEGLIGIBLE) & (times + ahead <= ends + _NEGLIGIBLE)
        return np.where(known, times + ahead, np.nan)

    def baseline_time(self, at: float) -> float:
        """Return the baseline's time for one time of the run; NaN without a counterpart."""
        return float(self.baseline_times(np.array([at]))[0])


def stage_spans(stages: Sequence[StageChange], *, end: float | None = None) -> list[StageSpan]:
    """Return the stages with a load; the changes of one stage are one span, with the load of its first change."""
    groups = [next(group) for _, group in itertools.groupby(stages, key=lambda stage: stage.index)]
    ends = [*(stage.at for stage in groups[1:]), math.inf if end is None else end]
    return [
        StageSpan(
            index=stage.index,
            start=stage.at,
            until=until,
            load=(stage.request_rate, stage.max_concurrency, stage.warmup, stage.settings),
            batch=stage.max_num_seqs,
        )
        for stage, until in zip(groups, ends, strict=False)
        if stage.request_rate is not None
    ]


def stage_clock(run: Sequence[StageSpan], baseline: Sequence[StageSpan], *, same_plan: bool) -> StageClock:
    """Stage k of a run begins with stage k of its baseline if both have the `same_plan`, else stages of equal load do.

    Without a common load both clocks start with the load. The newest stage of a live run shows what came next in the
    baseline.
    """
    pairs = _same_numbers(run, baseline) if same_plan else _same_loads(run, baseline)
    if not pairs and run and baseline:
        return StageClock(spans=(_span(run[0], baseline[0], until=math.inf, baseline_until=baseline[-1].until),))
    spans = []
    for one, other in pairs:
        open_ended = one is run[-1] and math.isinf(one.until)
        ends = baseline[-1].until if open_ended else other.until
        spans.append(_span(one, other, until=one.until, baseline_until=ends))
    return StageClock(spans=tuple(spans))


def _span(one: StageSpan, other: StageSpan, *, until: float, baseline_until: float) -> AlignedSpan:
    return AlignedSpan(start=one.start, until=until, ahead=other.start - one.start, baseline_until=baseline_until)


def _same_numbers(run: Sequence[StageSpan], baseline: Sequence[StageSpan]) -> list[tuple[StageSpan, StageSpan]]:
    """Pair the stages that have the same index; repetitions of a stage are paired in their order."""
    unused: dict[int, list[StageSpan]] = {}
    for span in reversed(baseline):
        unused.setdefault(span.index, []).append(span)
    return [(span, unused[span.index].pop()) for span in run if unused.get(span.index)]


def _same_loads(run: Sequence[StageSpan], baseline: Sequence[StageSpan]) -> list[tuple[StageSpan, StageSpan]]:
    """Stages of equal load and batch size in the same order; if there is none, those of equal load."""
    for with_batch in (True, False):
        keys = [[(span.load, span.batch if with_batch else None) for span in spans] for spans in (run, baseline)]
        blocks = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks()
        pairs = [(run[a + number], baseline[b + number]) for a, b, size in blocks for number in range(size)]
        if pairs:
            return pairs
    return []
