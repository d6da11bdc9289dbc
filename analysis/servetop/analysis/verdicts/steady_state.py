"""Steady-state detection: the window of a stage in which in-flight requests and throughput are stationary.

1. Only ticks under a constant load count, up to the last request that was due: ramps and drains are excluded.
2. In an open loop whose requests pile up (a trend of more than half of the mean, and of 5 % of what was due, in both
   halves, while the throughput has none) there is no steady state: the offered load is above what the engine serves.
3. Otherwise it is the longest window of blocks (24 to the load) in which neither the requests in the system nor the
   output tokens have a trend. A trend is significant (Mann-Kendall, two-sided, 1 %) and matters (more than 10 % of
   the mean from one end to the other by the Theil-Sen slope; perf_analyzer's `--stability-percentage` is 10 too).
4. MSER-5 cuts the rest of the initial transient off its start, and of a later change off its end.

Sources: Mann, Econometrica 13 (1945); Kendall, Rank Correlation Methods (1975); Sen, JASA 63 (1968); White, Cobb,
Spratt, "A comparison of five steady-state truncation heuristics for simulation", Winter Simulation Conference (2000);
how long a request stays: Little, Operations Research 9 (1961).
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
"""Stored with every window; renamed whenever the method could give a different window."""
MIN_TICKS = 40
"""Ten seconds."""
MIN_STAYS = 4.0
"""Shortest window, in mean times a request stays in the system; in less, the first requests are still there."""
MIN_SHARE = 0.5
"""Shortest window, as a share of the constant load: one that starts later may not be settled."""
_BLOCKS = 24
_Z = 2.5758
"""Quantile of the normal distribution, two-sided 1 %."""
_MATTERS = 0.10
_PILES_UP = 0.50
_OF_THE_DUE = 0.05
_IN_EACH_HALF = 0.25
"""Share of the overall slope; with less in one half, the level changed once."""
_SETTLING = 0.15
"""Initial share of the load in which requests may pile up, as in an empty engine until the first one ends."""
_BATCH = 5
"""Ticks in one of MSER-5's batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyWindow:
    """The steady part of a stage, or why it has none."""

    start: float | None = None
    """Run time of its start; None without a steady state."""
    end: float | None = None
    reason: str = ""
    """Why there is none, in one line."""
    method: str = METHOD

    @property
    def seconds(self) -> float | None:
        """Length of the window."""
        return None if self.start is None or self.end is None else self.end - self.start


def steady_window(stage: TickColumns, *, cooldown: float = 0.0) -> SteadyWindow:
    """The longest steady window among the ticks that lie wholly within one stage.

    The last `cooldown` seconds of its load are left out.
    """
    due = np.flatnonzero(stage.due > 0)
    if not due.size:
        return SteadyWindow(reason="no request was due")
    load = stage.part(int(due[0]), int(due[-1]) + 1 - math.ceil(cooldown / TICK_SECONDS))
    if load.size < MIN_TICKS:
        return SteadyWindow(reason=f"the load lasted {_seconds(load.size)}: at least {_seconds(MIN_TICKS)} are needed")
    first, stop = _longest_constant(load)
    if stop - first < max(MIN_TICKS, MIN_SHARE * load.size):
        return SteadyWindow(reason="the load was ramped or changed all the time")
    return _search(load.part(first, stop))


def _search(load: TickColumns) -> SteadyWindow:
    """Search in ticks under a constant load."""
    completed = float(load.completed[load.size // 2 :].mean())
    if completed <= 0 or not load.output_tokens.any():
        return SteadyWindow(reason="no request was completed in the second half of the load")
    stay = float(load.in_system[load.size // 2 :].mean()) / completed
    growth = _growth(load)
    if growth is not None:
        words = f"in flight grows by {growth:.2g} requests/s: the offered load is above what the engine serves"
        return SteadyWindow(reason=words)
    shortest = math.ceil(max(MIN_TICKS, MIN_SHARE * load.size, MIN_STAYS * stay))
    found = next(_without_trend(load, shortest=shortest), None)
    if found is None:
        return SteadyWindow(reason=_why_none(load, stay=stay))
    first, stop = _trimmed(load, *found, shortest=shortest)
    return SteadyWindow(start=float(load.start[first]), end=float(load.start[stop - 1]) + TICK_SECONDS)


def _longest_constant(load: TickColumns) -> tuple[int, int]:
    """First and last + 1 of the longest run of ticks with the same target load; the latest of equal ones."""
    wanted = np.stack([np.nan_to_num(load.request_rate, nan=-1.0), np.nan_to_num(load.max_concurrency, nan=-1.0)])
    same = (wanted[:, 1:] == wanted[:, :-1]).all(axis=0) & ~load.paused[1:] & ~load.paused[:-1]
    edges = np.concatenate([[0], np.flatnonzero(~same) + 1, [load.size]])
    longest = int(np.flatnonzero(np.diff(edges) == np.diff(edges).max())[-1])
    return int(edges[longest]), int(edges[longest + 1])


def _growth(load: TickColumns) -> float | None:
    """Requests/s by which an open loop's requests pile up at constant throughput; None if they do not."""
    first_end = int(np.argmax(load.completed > 0))
    late = load.part(max(int(load.size * _SETTLING), first_end), load.size)
    if late.size < _BLOCKS:
        return None
    edges = _edges(late.size)
    in_system, tokens = (_block_means(each, edges) for each in (late.in_system, late.output_tokens))
    growth, gain = _trend(in_system), _trend(tokens)
    if growth <= _PILES_UP or gain > 0 or not np.isfinite(load.request_rate).all():
        return None
    halves = [_slope(half) for half in np.split(in_system, 2)]
    if min(halves) < _IN_EACH_HALF * _slope(in_system):
        return None
    a_tick = growth * float(late.in_system.mean()) / late.size
    return a_tick / TICK_SECONDS if a_tick > _OF_THE_DUE * float(late.due.mean()) else None


def _without_trend(load: TickColumns, *, shortest: int) -> Iterator[tuple[int, int]]:
    """Windows of whole blocks without a trend, the longest first, the latest of equal ones."""
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
    """Change of the values from first to last, as a share of their mean; 0 if that is chance or too small.

    Mann-Kendall's S with its variance for untied values.
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
    return change if abs(change) > _MATTERS else 0.0


def _slope(values: FloatArray) -> float:
    """Theil-Sen: the median change from one value to the next, over all pairs."""
    early, late = np.triu_indices(values.size, 1)
    return float(np.median((values[late] - values[early]) / (late - early)))


def _trimmed(load: TickColumns, first: int, stop: int, *, shortest: int) -> tuple[int, int]:
    """The window without the transient at its start and, if it ends before the load, at its end."""
    most = stop - first - shortest
    signals = [each[first:stop] for each in (load.in_system, load.output_tokens)]
    front = max(mser(each, most=most) for each in signals)
    back = 0
    if stop < load.size:
        back = max(mser(each[front:][::-1], most=most - front) for each in signals)
    return first + front, stop - back


def mser(values: FloatArray, *, most: int) -> int:
    """Number of values to leave out at the start, at most `most`: the one that minimises MSER-5.

    With batch means z, the d that minimises sum((z_j - mean of z_d…)², j ≥ d) / (k - d)², k being their number.
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


def _why_none(load: TickColumns, *, stay: float) -> str:
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
            way = "grows" if change > 0 else "falls"
            return f"{what} {way} by {abs(change):.0%} of its mean over the second half of the load"
    return "in flight or output tokens/s changed level: no half of the load was without a trend"


def _seconds(ticks: float) -> str:
    return f"{ticks * TICK_SECONDS:.3g} s"
