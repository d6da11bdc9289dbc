"""Where the largest load within one objective lies, given what every load showed: a posterior over the load.

Near the answer the share of missed samples is a logistic function of the logarithm of the load with an unknown
slope, or it jumps there; a load farther away says only on which side of it the answer is, so a curve of another shape
does no harm.
Samples that miss together count as one event: a window of 1,000 requests with one bad second has seen one event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.run.search.load_curves import SLOPES, ShownLoads, jump_deviance, monotone_deviance, rising_deviances
from servetop.run.search.load_windows import LoadWindow, Trend
from servetop.run.search.sample_dependence import dependence

_USUAL_SLOPE, _SLOPE_SPREAD = 30.0, 0.6
"""Median and standard deviation (of the logarithm) of slopes before anything was measured."""
_PLATEAU = 1.0
"""Slope of the logit over the logarithm of the load along a plateau above the answer, if it is not flat."""
_UNLIKELY_PLATEAU = _UNLIKELY_JUMP = 6.0
"""Twice the logarithm of how much less likely a plateau above the answer, or a jump at it, is than neither, ..."""
_UNLIKELY_FLAT = 12.0
"""... and a flat plateau in an open loop, where a larger load always means longer queues."""
_LOADS = 200
"""Number of possible loads, and of those near the answer."""
_BETWEEN = (0.05, 0.5, 0.95)
"""Places of possible loads between each two that were tried, as parts of the logarithm of their ratio."""
_TAIL, _MARGIN = 1e-4, 1.05
"""Probability beyond the loads near the answer, and a factor by which they reach farther."""
_ASSUMED = 0.5
"""Length, in request latencies, of the one event that is added to those that were seen."""
_SIMILAR = 0.25
"""Relative distance of loads whose events are of similar size, ..."""
_OFTEN = 30.0
"""... if no more than this many times the allowed share is missed, as events merge then."""
_LEAST_TRIALS = 5.0
"""Independent samples of a window at least: missing the limit from begin to end is more than one event."""
DEPENDENCE = 1.4
"""Factor of the variance of shares: events come together too (set on servers and seeds apart from the judges'), ..."""
_OPEN_DEPENDENCE = 1.2
"""... and in an open loop, where a load counts less anyway, as its queue remembers how it began."""
CONFIDENCE = 0.95
_NORMAL = 1.96
"""Standard errors to either side of an interval of that confidence."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadPosterior:
    """Probabilities of the largest load within an objective; shape of both arrays: (loads,)."""

    loads: FloatArray
    """Ascending."""
    weights: FloatArray
    """Their sum is 1."""
    slope: float = math.nan
    """Mean slope of the logit over the logarithm of the load, if the share does not jump."""
    jump: float = 0.0
    """Probability that the share jumps at the answer."""

    def quantile(self, share: float) -> float:
        """Return the load below which the answer lies with this probability."""
        return float(np.interp(share, np.cumsum(self.weights) - self.weights / 2, self.loads))

    def below(self, load: float) -> float:
        """Return the probability that the answer is below a load."""
        return float(np.interp(load, self.loads, np.cumsum(self.weights) - self.weights / 2))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval."""
        rest = (1 - CONFIDENCE) / 2
        return self.quantile(rest), self.quantile(1 - rest)


def possible_loads(
    low: float, high: float, *, tried: Sequence[float] = (), near: LoadPosterior | None = None
) -> FloatArray:
    """Return loads from half of `low` to twice `high`; most of them where a posterior has its weight.

    There are some between any two neighbouring loads that were tried, because the share may jump there.
    """
    loads, known = np.geomspace(low / 2, 2 * high, _LOADS), np.log(np.unique(tried))
    found = [loads, *(np.exp(known[:-1] + part * np.diff(known)) for part in _BETWEEN)]
    if near is not None:
        ends = near.quantile(_TAIL) / _MARGIN, near.quantile(1 - _TAIL) * _MARGIN
        found.append(np.geomspace(*ends, _LOADS))
    return np.unique(np.concatenate(found))


def load_posterior(
    windows: Sequence[LoadWindow], *, allowed: float, loads: FloatArray, concurrency: bool = False
) -> LoadPosterior:
    """Return the posterior over ascending loads; `allowed` is the share that may miss the limit.

    With `concurrency` loads are numbers of requests in flight: those that an engine does not batch wait for others, and
    some latencies do not depend on how many they are.

    Each load is as unlikely as the less favourable of two views finds it: that of the curves, and that of any curve of
    which no more is known than that a larger load never misses less.
    """
    shown = _shown(windows, allowed, concurrency=concurrency)
    kinds = rising_deviances(shown, loads, allowed=allowed, plateaus=(None, _PLATEAU, 0.0))
    kinds.append(jump_deviance(shown, loads, allowed=allowed))
    least = min(float(each.curve.min()) for each in kinds)
    least_monotone = min(float(each.monotone.min()) for each in kinds)
    misfit = least / max(len(windows) - 2, 1)  # the answer is less sure where no curve fits
    scale = (DEPENDENCE if concurrency else _OPEN_DEPENDENCE) * max(1.0, misfit)
    usual = (np.log(SLOPES / _USUAL_SLOPE) / _SLOPE_SPREAD) ** 2
    anywhere = np.full(1, -2 * math.log(np.exp(-usual / 2).sum()))  # as much as all slopes together
    flat = _UNLIKELY_PLATEAU if concurrency else _UNLIKELY_FLAT
    unlikely = (usual, usual + _UNLIKELY_PLATEAU, usual + flat, anywhere + _UNLIKELY_JUMP)
    costs = [
        np.maximum(each.curve - least, each.monotone[:, None] - least_monotone) / scale + cost
        for each, cost in zip(kinds, unlikely, strict=True)
    ]
    lowest = min(float(each.min()) for each in costs)
    *rising, jump = (np.exp(-(each - lowest) / 2) for each in costs)
    slopes = np.sum(rising, axis=(0, 1))
    weights = np.array([each.sum(axis=1) for each in (*rising, jump)]) * np.gradient(np.log(loads))
    return LoadPosterior(
        loads=loads,
        weights=weights.sum(axis=0) / weights.sum(),
        slope=float((slopes * SLOPES).sum() / slopes.sum()),
        jump=float(weights[-1].sum() / weights.sum()),
    )


def monotone_posterior(windows: Sequence[LoadWindow], *, allowed: float, loads: FloatArray) -> LoadPosterior:
    """Return the posterior over ascending loads if no more is known than that a larger load never misses less.

    `windows` show the level of their load at once, as in a closed loop; `allowed` is the share that may miss the limit.
    """
    deviance = monotone_deviance(_shown(windows, allowed, concurrency=True), loads, allowed=allowed)
    weights = np.exp(-(deviance - deviance.min()) / DEPENDENCE / 2) * np.gradient(np.log(loads))
    return LoadPosterior(loads=loads, weights=weights / weights.sum())


def share_interval(windows: Sequence[LoadWindow], place: int, *, allowed: float) -> tuple[float, float]:
    """Return the 95 % interval of the share of missed samples of one of the windows (Wilson), 0 to 1 without samples.

    It counts events instead of samples, as the posterior does.
    """
    window = windows[place]
    if not window.counted:
        return 0.0, 1.0
    trials = window.counted / event_sizes(windows, allowed)[place] / DEPENDENCE
    spread = _NORMAL**2 / trials
    middle = (window.share + spread / 2) / (1 + spread)
    reach = math.sqrt(spread * window.share * (1 - window.share) + spread**2 / 4) / (1 + spread)
    return max(0.0, float(middle - reach)), min(1.0, float(middle + reach))


def least_of(posteriors: Sequence[LoadPosterior]) -> LoadPosterior:
    """Return the posterior of the least of several answers, which are taken as independent, over the same loads."""
    above = np.prod([1 - np.cumsum(each.weights) for each in posteriors], axis=0)
    weights = np.maximum(-np.diff(np.concatenate(([1.0], above))), 0.0)
    return replace(posteriors[0], weights=weights / weights.sum())


def event_sizes(windows: Sequence[LoadWindow], allowed: float) -> list[float]:
    """Return the samples of one event in each window: of its own, and of those of similar loads if they are larger.

    Few events were seen at first, and large ones are rare: one more is assumed, as long as a request lasts. It has all
    requests of that time, or as many fewer as these are known not to depend on each other.
    """
    sizes, alike = [], dependence([each.correlation for each in windows if each.correlation])
    for window in windows:
        similar = [each for each in windows if abs(math.log(each.load / window.load)) < _SIMILAR]
        seen = [size for each in similar if each.counted and each.share < _OFTEN * allowed for size in each.events]
        together = window.counted / max(window.seconds, 1e-9) * window.latency
        assumed = alike * together + (1 - alike)
        usual = assumed if not seen else _mean_size([*seen, _ASSUMED * assumed])
        sizes.append(min(max(1.0, usual, _mean_size(window.events)), max(window.counted / _LEAST_TRIALS, 1.0)))
    return sizes


def _mean_size(events: Sequence[float]) -> float:
    """Return the mean size of the event to which a missed sample belongs; 0 without events."""
    total = sum(events)
    return sum(size**2 for size in events) / total if total else 0.0


def _shown(windows: Sequence[LoadWindow], allowed: float, *, concurrency: bool) -> ShownLoads:
    """Return what windows show, in ascending order of their loads; those that show nothing are left out."""
    found = []
    for window, size in zip(windows, event_sizes(windows, allowed), strict=True):
        kept = window.share <= allowed
        unknown = (window.trend is Trend.RISING and kept) or (window.trend is Trend.FALLING and not kept)
        if window.counted and not unknown:
            due = math.inf if concurrency else window.load * window.seconds
            found.append((window.load, window.missed / size, window.counted / size, due))
    at, events, trials, requests = np.array(sorted(found)).reshape(-1, 4).T
    return ShownLoads(at=at, events=events, trials=trials, requests=requests)
