"""Steady-state detection: the window of a stage in which in-flight requests and throughput are stationary.

1. Only ticks under a constant load are used, up to the last request that was due: ramps and drains are excluded.
2. An open loop whose requests pile up (a trend of more than half of the mean, and of 5 % of the due requests, in both
   halves, while the throughput has none) has no steady state: more requests arrive than complete.
3. Otherwise the window is the longest one of whole blocks (the load has 24) in which neither the requests in the system
   nor the output tokens have a trend. A trend is significant (Mann-Kendall, two-sided, 1 %) and relevant (more than
   10 % of the mean over the window by the Theil-Sen slope; perf_analyzer's `--stability-percentage` is also 10).
4. MSER-5 removes the rest of the initial transient at the start, and of a later change at the end.

Sources: Mann, Econometrica 13 (1945); Kendall, Rank Correlation Methods (1975); Sen, JASA 63 (1968); White, Cobb,
Spratt, "A comparison of five steady-state truncation heuristics for simulation", Winter Simulation Conference (2000);
mean time in the system: Little, Operations Research 9 (1961).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servetop.analysis.series.tick_columns import TickColumns
from servetop.core.arrays import FloatArray, IntArray, np
from servetop.core.tick import TICK_SECONDS

if TYPE_CHECKING:
    pass

METHOD = "mann-kendall+mser-5"
"""Name stored with every window; it changes whenever the method may find a different window."""
MIN_TICKS = 40
"""Ten seconds."""
MIN_STAYS = 4.0
"""Minimum window as a multiple of the mean time in the system; in less, the first requests may be unfinished."""
MIN_SHARE = 0.5
"""Minimum window as a fraction of the constant load; a later start suggests that it has not settled."""
RAMPED = "the load was ramped or kept changing"
"""Reason of a load that has no steady state by design."""
_BLOCKS = 24
_Z = 2.5758
"""Quantile of the normal distribution for a two-sided level of 1 %."""
_MIN_TREND = 0.10
_MIN_PILE_UP = 0.50
_MIN_SHARE_OF_DUE = 0.05
_MIN_HALF_SLOPE = 0.25
"""Minimum fraction of the overall slope in each half; with less in one half, the level changed once."""
_SETTLING_SHARE = 0.15
"""Initial fraction of the load in which requests may pile up, because an empty engine must fill."""
_BATCH = 5
"""Batch size of MSER-5 in ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyWindow:
    """The steady window of a stage, or the reason why it has none."""

    start: float | None = None
    """Run time of the start; None without a steady state."""
    end: float | None = None
    reason: str = ""
    """Why there is none, in one line."""
    method: str = METHOD

    @property
    def seconds(self) -> float | None:
        """Length of the window; None without a steady state."""
        return None if self.start is None or self.end is None else self.end - self.start


def shows_trend(reason: str) -> bool:
    """Whether a reason says that figures had a trend, rather than that the load was too short to find one."""
    return reason.startswith(("in flight ", "output tokens/s ", "requests queued "))


def steady_window(stage: TickColumns, *, cooldown: float = 0.0) -> SteadyWindow:
    """Return the longest steady window of the ticks of a stage, except the last `cooldown` seconds of its load."""
    due = np.flatnonzero(stage.due > 0)
    if not due.size:
        return SteadyWindow(reason="no request was due")
    load = stage.part(int(due[0]), int(due[-1]) + 1 - math.ceil(cooldown / TICK_SECONDS))
    if load.size < MIN_TICKS:
        return SteadyWindow(reason=f"the load lasted {_seconds(load.size)}: at least {_seconds(MIN_TICKS)} are needed")
    first, stop = _longest_constant(load)
    if stop - first < max(MIN_TICKS, MIN_SHARE * load.size):
        return SteadyWindow(reason=_no_constant_load_reason(load, ticks=stop - first))
    return _search(load.part(first, stop))


def _search(load: TickColumns) -> SteadyWindow:
    """Search the ticks of a constant load."""
    completed = float(load.completed[load.size // 2 :].mean())
    if completed <= 0 or not load.output_tokens.any():
        return SteadyWindow(reason="no request was completed in the second half of the load")
    stay = float(load.in_system[load.size // 2 :].mean()) / completed
    growth = _growth(load)
    if growth is not None:
        return SteadyWindow(reason=_growth_reason(load, growth))
    shortest = math.ceil(max(MIN_TICKS, MIN_SHARE * load.size, MIN_STAYS * stay))
    window = next(_without_trend(load, shortest=shortest), None)
    if window is None:
        return SteadyWindow(reason=_no_window_reason(load, stay=stay))
    first, stop = _trimmed(load, *window, shortest=shortest)
    return SteadyWindow(start=float(load.start[first]), end=float(load.start[stop - 1]) + TICK_SECONDS)


def _longest_constant(load: TickColumns) -> tuple[int, int]:
    """Return start and end of the longest run of ticks with the same target load; the latest of equal ones."""
    target = np.stack([np.nan_to_num(load.request_rate, nan=-1.0), np.nan_to_num(load.max_concurrency, nan=-1.0)])
    same = (target[:, 1:] == target[:, :-1]).all(axis=0) & ~load.paused[1:] & ~load.paused[:-1]
    edges = np.concatenate([[0], np.flatnonzero(~same) + 1, [load.size]])
    longest = int(np.flatnonzero(np.diff(edges) == np.diff(edges).max())[-1])
    return int(edges[longest]), int(edges[longest + 1])


def _growth(load: TickColumns) -> float | None:
    """Return the requests/s by which an open loop's requests pile up at constant throughput; None if they do not."""
    first_end = int(np.argmax(load.completed > 0))
    late = load.part(max(int(load.size * _SETTLING_SHARE), first_end), load.size)
    if late.size < _BLOCKS:
        return None
    edges = _edges(late.size)
    in_system, tokens = (_block_means(each, edges) for each in (late.in_system, late.output_tokens))
    growth, gain = _trend(in_system), _trend(tokens)
    if growth <= _MIN_PILE_UP or gain > 0 or not np.isfinite(load.request_rate).all():
        return None
    halves = [_slope(half) for half in np.split(in_system, 2)]
    if min(halves) < _MIN_HALF_SLOPE * _slope(in_system):
        return None
    per_tick = growth * float(late.in_system.mean()) / late.size
    return per_tick / TICK_SECONDS if per_tick > _MIN_SHARE_OF_DUE * float(late.due.mean()) else None


def _growth_reason(load: TickColumns, growth: float) -> str:
    """What grows by `growth` requests/s: with a limit of requests in flight, those that it queues at the client."""
    limit = float(load.max_concurrency[-1])
    if load.in_system[-1] > limit:
        held = f"the limit of {limit:.0f} in flight holds them back"
        return f"requests queued at the client grow by {growth:.2g}/s: {held}"
    return f"in flight grows by {growth:.2g} requests/s: more requests arrive than complete"


def _without_trend(load: TickColumns, *, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield windows of whole blocks without a trend, the longest first, and the latest first of equal ones."""
    edges = _edges(load.size)
    blocks = [_block_means(values, edges) for values in (load.in_system, load.output_tokens)]
    count = edges.size - 1
    for length in range(count, 0, -1):
        for first in range(count - length, -1, -1):
            low, high = int(edges[first]), int(edges[first + length])
            if high - low >= shortest and not any(_trend(each[first : first + length]) for each in blocks):
                yield low, high


def _edges(ticks: int) -> IntArray:
    return np.linspace(0, ticks, _BLOCKS + 1).astype(np.int64)


def _block_means(values: FloatArray, edges: IntArray) -> FloatArray:
    return np.add.reduceat(values, edges[:-1]) / np.diff(edges)


def _trend(values: FloatArray) -> float:
    """Return the change from the first to the last value as a fraction of the mean; 0 if insignificant or small.

    The test is Mann-Kendall's S with its variance for untied values.
    """
    count, mean = values.size, float(np.abs(values).mean())
    if count < 3 or mean == 0:
        return 0.0
    early, late = np.triu_indices(count, 1)
    score = float(np.sign(values[late] - values[early]).sum())
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    if abs(score) - 1 < _Z * deviation:
        return 0.0
    change = _slope(values) * (count - 1) / mean
    return change if abs(change) > _MIN_TREND else 0.0


def _slope(values: FloatArray) -> float:
    """Return the Theil-Sen slope: the median change per value over all pairs."""
    early, late = np.triu_indices(values.size, 1)
    return float(np.median((values[late] - values[early]) / (late - early)))


def _trimmed(load: TickColumns, first: int, stop: int, *, shortest: int) -> tuple[int, int]:
    """Return the window without the transient at its start and, if it ends before the load, at its end."""
    most = stop - first - shortest
    signals = [each[first:stop] for each in (load.in_system, load.output_tokens)]
    front = max(mser(each, most=most) for each in signals)
    back = 0
    if stop < load.size:
        back = max(mser(each[front:][::-1], most=most - front) for each in signals)
    return first + front, stop - back


def mser(values: FloatArray, *, most: int) -> int:
    """Return the number of values to truncate at the start, at most `most`, that minimises MSER-5.

    For k batch means z, it is the d that minimises sum((z_j - mean of z_d…)², j ≥ d) / (k - d)².
    """
    count = values.size // _BATCH
    last = min(most // _BATCH, count - 2)
    if last <= 0:
        return 0
    sums = values[: count * _BATCH].reshape(count, _BATCH).sum(axis=1)
    left = np.arange(count, 0, -1)
    total = np.cumsum(sums[::-1])[::-1]
    squares = np.cumsum((sums**2)[::-1])[::-1]
    statistic = (squares - total**2 / left) / left**2
    return int(np.argmin(statistic[: last + 1])) * _BATCH


def _no_constant_load_reason(load: TickColumns, *, ticks: int) -> str:
    """Return why the longest constant load, of `ticks` ticks, is too short.

    The last tick of a load ends after it, where there is no target: that is no change of the load.
    """
    active = ~np.isnan(load.request_rate)
    targets = (load.request_rate[active], np.nan_to_num(load.max_concurrency[active], nan=-1.0))
    if any(np.unique(each).size > 1 for each in targets):
        return RAMPED
    what = "the longest part without a pause" if load.paused.any() else "the constant load"
    return f"{what} lasted {_seconds(ticks)}: at least {_seconds(max(MIN_TICKS, MIN_SHARE * load.size))} are needed"


def _no_window_reason(load: TickColumns, *, stay: float) -> str:
    if load.size < MIN_STAYS * stay:
        return (
            f"the load lasted {_seconds(load.size)}, but a request takes {_seconds(stay)}: "
            f"at least {MIN_STAYS:g} times that is needed"
        )
    edges = _edges(load.size)
    late = slice(_BLOCKS // 2, None)
    for values, what in ((load.in_system, "in flight"), (load.output_tokens, "output tokens/s")):
        change = _trend(_block_means(values, edges)[late])
        if change:
            direction = "grows" if change > 0 else "falls"
            return f"{what} {direction} by {abs(change):.0%} of its mean over the second half of the load"
    return "in flight or output tokens/s changed level: no half of the load was without a trend"


def _seconds(ticks: float) -> str:
    return f"{ticks * TICK_SECONDS:.3g} s"
