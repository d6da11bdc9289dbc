"""Where the largest load within one objective lies, given what every load showed: a posterior over the load.

Near the answer the share of missed samples is a logistic function of the logarithm of the load with an unknown
slope; a load farther away says only on which side of it the answer is, so a curve of another shape does no harm.
Samples that miss together count as one event: a window of 1,000 requests with one bad second has seen one event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.run.search.load_windows import LoadWindow, Trend

_SLOPES = np.geomspace(3.0, 300.0, 20)
"""Slopes of the logit over the logarithm of the load."""
_USUAL_SLOPE, _SLOPE_SPREAD = 30.0, 0.6
"""Median and standard deviation (of the logarithm) of slopes before anything was measured."""
_FLATTEST = 4.0
"""A curve is nowhere flatter than this slope above the answer, with which far loads are compared."""
_PLATEAU = 0.1
"""The share of missed samples at a plateau above the answer, or twice the allowed share; ..."""
_UNLIKELY = 6.0
"""... twice the logarithm of how much less likely a plateau is than none."""
_NEAR = 0.15
"""Relative distance of a load within which the logistic curve is taken as true."""
_NEGLIGIBLE = 1e-4
"""Weight from which the curve near a load counts at all."""
_LOADS = 200
"""Number of possible loads, and of those near the answer."""
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
"""Factor of the variance of shares: events come together too (set on servers and seeds apart from the judgement's)."""
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
    """Mean slope of the logit over the logarithm of the load."""

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


def possible_loads(low: float, high: float, *, near: LoadPosterior | None = None) -> FloatArray:
    """Return loads from half of `low` to twice `high`; most of them where a posterior has its weight."""
    loads = np.geomspace(low / 2, 2 * high, _LOADS)
    if near is None:
        return loads
    ends = near.quantile(_TAIL) / _MARGIN, near.quantile(1 - _TAIL) * _MARGIN
    return np.unique(np.concatenate((loads, np.geomspace(*ends, _LOADS))))


def load_posterior(windows: Sequence[LoadWindow], *, allowed: float, loads: FloatArray) -> LoadPosterior:
    """Return the posterior over ascending loads; `allowed` is the share that may miss the limit."""
    sizes = event_sizes(windows, allowed)
    costs = np.zeros((2, loads.size, _SLOPES.size))  # of a curve that rises ever farther, and of one with a plateau
    for window, size in zip(windows, sizes, strict=True):
        if window.counted:
            _add_deviance(costs, window, size, loads, allowed=allowed)
    misfit = float(costs.min()) / max(len(windows) - 2, 1)  # the answer is less sure where no curve fits
    costs /= DEPENDENCE * max(1.0, misfit)
    costs += (np.log(_SLOPES / _USUAL_SLOPE) / _SLOPE_SPREAD) ** 2
    costs[1] += _UNLIKELY
    joint = np.exp(-(costs - costs.min()) / 2).sum(axis=0)
    weights = joint.sum(axis=1) * np.gradient(np.log(loads))
    slope = float((joint.sum(axis=0) * _SLOPES).sum() / joint.sum())
    return LoadPosterior(loads=loads, weights=weights / weights.sum(), slope=slope)


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

    Few events were seen at first, and large ones are rare: one more is assumed, as long as a request lasts.
    """
    sizes = []
    for window in windows:
        similar = [each for each in windows if abs(math.log(each.load / window.load)) < _SIMILAR]
        seen = [size for each in similar if each.counted and each.share < _OFTEN * allowed for size in each.events]
        assumed = window.counted / max(window.seconds, 1e-9) * window.latency
        usual = assumed if not seen else _mean_size([*seen, _ASSUMED * assumed])
        sizes.append(min(max(1.0, usual, _mean_size(window.events)), max(window.counted / _LEAST_TRIALS, 1.0)))
    return sizes


def _mean_size(events: Sequence[float]) -> float:
    """Return the mean size of the event to which a missed sample belongs; 0 without events."""
    total = sum(events)
    return sum(size**2 for size in events) / total if total else 0.0


def _add_deviance(costs: FloatArray, window: LoadWindow, size: float, loads: FloatArray, *, allowed: float) -> None:
    """Add twice the log-likelihood ratio to a perfect fit to both costs; shape (2, loads, slopes)."""
    events, trials = window.missed / size, window.counted / size
    kept = window.share <= allowed
    if (window.trend is Trend.RISING and kept) or (window.trend is Trend.FALLING and not kept):
        return
    distance = np.log(window.load / loads)
    near = np.exp(-((distance / _NEAR) ** 2))
    close = np.flatnonzero(near > _NEGLIGIBLE)
    fitted = _binomial(events, trials, _logistic(allowed, distance[close, None] * _SLOPES[None, :]))
    for cost, most in zip(costs, (1.0, max(2 * allowed, _PLATEAU)), strict=True):
        least = np.minimum(_logistic(allowed, np.maximum(distance, 0.0) * _FLATTEST), most)
        contradicts = np.where(distance > 0, window.share < least, window.share > allowed)
        sided = np.where(contradicts, _binomial(events, trials, least), 0.0)
        cost += ((1 - near) * sided)[:, None]
        cost[close] += near[close, None] * fitted


def _logistic(allowed: float, shift: FloatArray) -> FloatArray:
    """Return the share that misses the limit where the logit is `shift` above that of the allowed share."""
    logit = math.log(allowed / (1 - allowed)) + np.clip(shift, -40, 40)
    return np.asarray(1 / (1 + np.exp(-logit)))


def _binomial(events: float, trials: float, share: FloatArray) -> FloatArray:
    """Return the deviance of `events` among `trials` from an expected share."""
    share = np.clip(share, 1e-12, 1 - 1e-12)
    seen = events / trials
    hit = events * np.log(np.maximum(seen, 1e-300) / share) if events else 0.0
    rest = (trials - events) * np.log(np.maximum(1 - seen, 1e-300) / (1 - share)) if trials > events else 0.0
    return np.asarray(2 * (hit + rest))
