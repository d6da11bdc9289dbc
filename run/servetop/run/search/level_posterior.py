"""Where the largest load within an objective on a latency percentile lies, by the latencies at each load.

How far a percentile is from its limit tells more than how many samples missed the limit: from a load at which none was
missed, and two others, a line leads to the load at which the limit is reached.

That holds where the latencies of a load show at once: in a closed loop, and in an open one without a queue. Near the
capacity of an engine they follow a queue in an open loop, which needs minutes to reach its level: lines through levels
of different age mislead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.run.search.latency_levels import event_size, level_deviance
from servetop.run.search.level_chain import LEVELS, Curves, curves
from servetop.run.search.load_posterior import DEPENDENCE, LoadPosterior
from servetop.run.search.load_windows import LoadWindow, Trend

_TAIL = 1e-5
"""Probability of answers that are left out at either end, by how many samples missed the limit."""
_TOO_HIGH = 1.0
"""Deviance of the levels within the limit from which a load is too high; no line is drawn beyond the loads before."""
_BEYOND = 0.3
"""By how much the logarithms of loads reach beyond the possible answers, as lines lead to these from there."""
_DISTANCE, _MOST = 0.01, 160
"""Distance of the logarithms of neighbouring loads, unless that makes too many."""
_VISIT = 0.015
"""Standard deviation of the load at which a steady run has the level that a visit shows, as a part of the load.

For some time an engine depends on how its requests began when the load changed. Chosen on simulated engines that do not
belong to the judged ones (`tests/judgement/searched_servers.py`, closed loops 1 to 6).
"""
_FITTED = 3
"""Parameters of the curve near the answer that follow from the windows: its place, slope and a bend."""


def has_latencies(windows: Sequence[LoadWindow]) -> bool:
    """Whether the latencies of all windows that have samples are known, and of at least one."""
    counted = [each for each in windows if each.counted]
    return bool(counted) and all(each.samples is not None for each in counted)


def level_posterior(
    windows: Sequence[LoadWindow], near: LoadPosterior, *, allowed: float, rough: LoadPosterior | None = None
) -> LoadPosterior:
    """Return the posterior over the loads of `near`, which is that of missed samples and bounds it.

    `windows` show the level of their load at once, as in a closed loop; `allowed` is the share of samples that may miss
    the limit. `rough` is what was returned for other loads: near its answer levels are computed at loads that are
    closer to each other.
    """
    low, high = (math.log((rough or near).quantile(share)) for share in (_TAIL, 1 - _TAIL))
    ends = low - _BEYOND, high + _BEYOND
    shown = _shown(windows, allowed, ends).scaled(DEPENDENCE)
    if not shown.any_too_high():
        return near
    grid = np.linspace(*ends, min(math.ceil((ends[1] - ends[0]) / _DISTANCE), _MOST) + 1)
    found = shown.on(grid)
    misfit = shown.misfit(found, grid)
    if misfit > 1:
        found = shown.scaled(misfit).on(grid)
    possible = (grid >= low) & (grid <= high)
    above = _smeared(_evenly(found.within, grid, possible), float(grid[1] - grid[0]))
    logs = np.log(near.loads)
    edges = (logs[1:] + logs[:-1]) / 2
    below = np.concatenate(([0.0], np.interp(edges, grid, 1 - above), [1.0]))
    return replace(near, weights=np.diff(below), slope=math.nan, jump=found.jump)


def _smeared(above: FloatArray, distance: float) -> FloatArray:
    """Return the probabilities that the answer is above each load, blurred by how visits differ from steady runs."""
    reach = math.ceil(4 * _VISIT / distance)
    kernel = np.exp(-((np.arange(-reach, reach + 1) * distance / _VISIT) ** 2) / 2)
    padded = np.concatenate((np.ones(reach), above, np.zeros(reach)))
    return np.asarray(np.convolve(padded, kernel / kernel.sum(), mode="valid"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shown:
    """The loads and the likely levels of the windows; arrays have a row for each window."""

    at: FloatArray
    """Logarithms of the loads; shape (windows,)."""
    mean: FloatArray
    """Twice the negative log-likelihood of each level; shape (windows, levels)."""
    least: FloatArray
    """The same of the best fit in the range of the level."""

    def any_too_high(self) -> bool:
        """Whether the level of any of the loads is beyond the limit."""
        within, beyond = (self.least[:, side].min(axis=1) for side in (LEVELS <= 0, LEVELS > 0))
        return bool((within - beyond > _TOO_HIGH).any())

    def on(self, grid: FloatArray) -> Curves:
        """Return the curves over a grid of logarithms of loads."""
        deviances = np.zeros((grid.size, LEVELS.size))
        np.add.at(deviances, self._places(grid), self.mean)
        return curves(np.diff(grid).tolist(), deviances)

    def misfit(self, found: Curves, grid: FloatArray) -> float:
        """Return the deviance of curves for each degree of freedom, 1 at least."""
        total = float((found.levels[self._places(grid)] * self.least).sum())
        return max(1.0, total / max(self.at.size - _FITTED, 1))

    def _places(self, grid: FloatArray) -> IntArray:
        return np.asarray(np.abs(np.subtract.outer(self.at, grid)).argmin(axis=1))

    def scaled(self, variance: float) -> _Shown:
        """Return the same with a factor of the variance."""
        return replace(self, mean=self.mean / variance, least=self.least / variance)


def _evenly(within: FloatArray, grid: FloatArray, possible: BoolArray) -> FloatArray:
    """Return the probabilities that the answer is above each load, if all possible ones were as likely before."""
    seen, usual = (
        -np.diff(each, prepend=1.0) for each in (within, _usual(grid.size, round(float(grid[1] - grid[0]), 9)))
    )
    weights = np.where(possible, seen / np.maximum(usual, 1e-9), 0.0)
    return np.asarray(1 - np.cumsum(weights) / weights.sum())


@lru_cache(maxsize=64)
def _usual(size: int, distance: float) -> FloatArray:
    """Return the probabilities that loads are within the objective before anything was measured."""
    return curves([distance] * (size - 1), np.zeros((size, LEVELS.size))).within


def _shown(windows: Sequence[LoadWindow], allowed: float, ends: tuple[float, float]) -> _Shown:
    near = [each for each in windows if ends[0] <= math.log(each.load) <= ends[1] and not _is_unknown(each, allowed)]
    seen = [(each, each.samples) for each in near if each.samples is not None and each.samples.due.size]
    size = event_size([samples for _, samples in seen], allowed=allowed)
    found = [level_deviance(samples, allowed=allowed, size=size) for _, samples in seen]
    mean = np.array([each.mean for each in found]).reshape(-1, LEVELS.size)
    least = np.array([each.least for each in found]).reshape(-1, LEVELS.size)
    return _Shown(at=np.log([each.load for each, _ in seen]), mean=mean, least=least)


def _is_unknown(window: LoadWindow, allowed: float) -> bool:
    """Whether a window has not settled, and may be on the other side of the limit when it has."""
    kept = window.share <= allowed
    return (window.trend is Trend.RISING and kept) or (window.trend is Trend.FALLING and not kept)
