"""What the loads say of one tier: where the largest load lies that keeps all of its objectives and its queue short."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from servetop.core.arrays import FloatArray
from servetop.run.search.level_posterior import has_latencies, level_posterior
from servetop.run.search.load_posterior import (
    LoadPosterior,
    least_of,
    load_posterior,
    monotone_posterior,
    possible_loads,
)
from servetop.run.search.load_windows import LoadWindow, Trend
from servetop.run.search.mean_posterior import MEAN_DEPENDENCE, mean_posterior
from servetop.run.search.queue_memory import shows_level_at_once
from servetop.run.search.queue_windows import QUEUE_ALLOWED
from servetop.run.search.search_answer import QUEUE, AnswerKind
from servetop.run.search.search_evidence import LoadObjective, SearchLimits

_STEEP = 100.0
"""Slope of the logit from which the figures of an objective jump, ..."""
_JUMPS = 0.5
"""... or probability of a jump from which they do, ..."""
_JUMP = 1.05
"""... if both sides of the jump are no farther apart than this factor beyond the interval."""
_REQUESTS = 50.0
"""Requests for each independent part of a queue beside a mean."""
_CLEAR = 10.0
"""A load is too high beyond doubt if this many times the allowed share of samples missed the limit, ..."""
_CLEAR_MEAN = 1.5
"""... or if the whole interval of the mean is beyond this many times the limit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TierPosterior:
    """The posteriors of one tier."""

    text: tuple[str, ...]
    """For each of `parts`, the text of its objective, or `queue`."""
    parts: tuple[LoadPosterior, ...]
    views: tuple[Sequence[LoadWindow], ...]
    """The windows of each part."""
    whole: LoadPosterior
    limits: SearchLimits

    @property
    def width(self) -> float:
        """How far the interval reaches from the answer, relative to it."""
        low, high = self.whole.interval
        middle = self.whole.quantile(0.5)
        return max(high / middle, middle / low) - 1

    @property
    def is_wide(self) -> bool:
        """Whether the interval is wider than asked, within the loads that may be tried."""
        low, high = self.whole.interval
        middle, precision = self.whole.quantile(0.5), self.limits.precision
        narrow = high <= (1 + precision) * middle and low >= (1 - precision) * middle
        narrow |= self.limits.concurrency and math.floor(low) == math.floor(high)  # requests in flight are whole
        return not narrow and not self._is_above and high > self.limits.low

    @property
    def _is_above(self) -> bool:
        """Whether the answer is beyond the loads that may be tried, as far as the precision tells."""
        return self.whole.interval[0] >= (1 - self.limits.precision) * self.limits.high

    @property
    def kind(self) -> AnswerKind:
        """The kind of the answer, unless the server drifted."""
        low, high = self.whole.interval
        if self._is_above:
            return AnswerKind.ABOVE
        if high <= self.limits.low:
            return AnswerKind.BELOW
        if self.is_wide:
            return AnswerKind.WIDE
        parts = zip(self.text, self.views, self.parts, strict=True)
        seen = [view for text, view, part in parts if part.slope >= _STEEP or (part.jump >= _JUMPS and text != QUEUE)]
        return AnswerKind.CLIFF if any(_jumps(view, low, high) for view in seen) else AnswerKind.FOUND


def tier_posterior(
    views: Sequence[Sequence[LoadWindow]],
    members: Sequence[int],
    objectives: Sequence[LoadObjective],
    limits: SearchLimits,
) -> TierPosterior:
    """Return the posterior of a tier; `views` has the windows of each objective, and last those of the queue."""
    text = [objectives[index].text for index in members]
    seen = [views[index] for index in members]
    if not limits.concurrency:
        text.append(QUEUE)
        seen.append(_by_requests(views[-1]) if any(objectives[index].mean for index in members) else views[-1])

    def over(loads: FloatArray, rough: Sequence[LoadPosterior] | None = None) -> list[LoadPosterior]:
        of = partial(_of_objective, loads=loads, concurrency=limits.concurrency)
        found = [
            of(views[index], objectives[index], rough=rough[place] if rough else None)
            for place, index in enumerate(members)
        ]
        queue = [] if limits.concurrency else [load_posterior(seen[-1], allowed=QUEUE_ALLOWED, loads=loads)]
        return [*found, *queue]

    tried = [window.load for window in views[0]]
    possible = partial(possible_loads, limits.low, limits.high, tried=tried)
    rough = over(possible())
    parts = over(possible(near=least_of(rough)), rough)
    return TierPosterior(
        text=tuple(text), parts=tuple(parts), views=tuple(seen), whole=least_of(parts), limits=limits
    )  # fmt: skip


def is_missed(window: LoadWindow, objective: LoadObjective) -> bool:
    """Whether a load missed an objective, as far as it was seen: by its figure, without its error."""
    if objective.mean:
        return window.mean is not None and window.mean.value > objective.most
    return window.share > objective.allowed


def is_clearly_missed(window: LoadWindow, objective: LoadObjective) -> bool:
    """Whether a load is too high for an objective beyond doubt: it is far beyond what is allowed."""
    if objective.mean:
        low = 0.0 if window.mean is None else window.mean.interval(MEAN_DEPENDENCE)[0]
        return low > _CLEAR_MEAN * objective.most
    return window.share > min(_CLEAR * objective.allowed, 0.5)


def _by_requests(queue: Sequence[LoadWindow]) -> list[LoadWindow]:
    """Return the windows of the queue with no more parts than their requests can tell.

    A mean reaches its limit close to the load that the engine can complete, where a queue that grows by a tenth of the
    requests is hidden in their random arrivals for hundreds of them. A percentile is missed at a smaller load.
    """
    return [
        each if each.missed else replace(each, counted=min(each.counted, each.load * each.seconds / _REQUESTS))
        for each in queue
    ]


def _of_objective(
    view: Sequence[LoadWindow],
    objective: LoadObjective,
    *,
    loads: FloatArray,
    rough: LoadPosterior | None,
    concurrency: bool,
) -> LoadPosterior:
    """Return the posterior of one objective: by its latencies, if they are known and show the level of a load at once.

    They do in a closed loop, and where no queue is seen in an open one; else it is by missed samples.
    """
    if objective.mean:
        return mean_posterior(view, limit=objective.most, loads=loads)
    at_once = concurrency or shows_level_at_once(view, allowed=objective.allowed)
    if at_once and has_latencies(view):
        view = view if concurrency else [_at_once(each) for each in view]
        bound = monotone_posterior(view, allowed=objective.allowed, loads=loads)
        return level_posterior(view, bound, allowed=objective.allowed, rough=rough)
    return load_posterior(view, allowed=objective.allowed, loads=loads, concurrency=concurrency)


def _at_once(window: LoadWindow) -> LoadWindow:
    """Return a window of an open loop whose latencies do not remember a queue as one of a closed loop."""
    return window if window.memory is None else replace(window, correlation=window.memory.blocks)


def _jumps(view: Sequence[LoadWindow], low: float, high: float) -> bool:
    """Whether at least half of the samples miss their limit at a load that is hardly larger than the answer."""
    near = [each for each in view if low / _JUMP <= each.load <= high * _JUMP and each.counted]
    return any(each.share >= 0.5 and each.trend is Trend.SETTLED for each in near)
