"""How likely each level of a latency percentile is, given the samples of one load.

A percentile of p99 is the latency that 1 % of the requests exceed. So of a number of samples those beyond a level are
binomial at that share, if it is the percentile, whatever the distribution; its interval is that of order statistics.
Beyond the largest sample, where the percentile is if all samples happen to be below it, little is known: its density
falls with the square of the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.run.search.level_chain import LEVELS

_PARTS = 8
"""Parts of the range of each level that are judged apart."""
_LEAST_SPREAD = 0.05
"""Standard deviation of levels that is assumed at least."""
_BLOCK, _BLOCK_LATENCIES = 2.5, 2.0
"""Least seconds of a block of samples that depend on each other, and latencies of it."""
_LEAST_BLOCKS, _LEAST_BEYOND = 4, 3.0
"""Blocks of a window, and samples beyond the percentile in it, from which their dependence is estimated."""
_USUAL_SIZE, _USUAL_WEIGHT = 1.3, 6.0
"""Samples of one event before anything was measured, and how many blocks that is worth."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatencySamples:
    """The latencies of one window; arrays of shape (samples,), in order of `due`."""

    due: FloatArray
    """Run time in seconds."""
    levels: FloatArray
    """Logarithm of latency / limit; of a request in flight that of the time that it has waited."""
    longest: FloatArray
    """The level up to which each could have been seen yet: that of the time since it was due."""
    begin: float
    end: float
    """Begin and end of the window, run time in seconds."""
    latency: float
    """Median seconds from due to done; NaN if nothing has ended."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelDeviance:
    """Twice the negative log-likelihood of each level, relative to that of the best fit; shape (levels,)."""

    mean: FloatArray
    """That of the mean likelihood in the range of each level."""
    least: FloatArray
    """That of the best fit in the range of each level."""


def level_deviance(samples: LatencySamples, *, allowed: float, size: float) -> LevelDeviance:
    """Return how well each level fits as the percentile that a share `allowed` exceeds; `size` of one event."""
    edges = np.concatenate((LEVELS[:1], (LEVELS[1:] + LEVELS[:-1]) / 2, LEVELS[-1:]))
    inner = (np.arange(_PARTS) + 0.5) / _PARTS
    fine = (edges[:-1, None] + np.diff(edges)[:, None] * inner).ravel()
    widths = np.repeat(np.diff(edges) / _PARTS, _PARTS)
    beyond = samples.levels.size - np.searchsorted(np.sort(samples.levels), fine, side="right")
    counted = samples.longest.size - np.searchsorted(np.sort(samples.longest), fine, side="left")
    counted = np.maximum(np.maximum(counted, beyond), 1)  # later requests would be there only if they were fast
    share = np.clip(beyond / counted, 1e-12, 1 - 1e-12)
    deviance = 2 * counted * (share * np.log(share / allowed) + (1 - share) * np.log((1 - share) / (1 - allowed)))
    density = np.exp(-(deviance - deviance.min()) / size / 2)
    largest = max(float(samples.levels.max()), float(fine[0]))
    within = fine <= largest
    tail = float(density[-1])  # none of the samples is beyond the percentile
    hidden = tail / max(tail + float(density[within].max()), 1e-300)
    ended = samples.levels[samples.levels < samples.longest]
    spread = max(float(np.std(ended)) if ended.size else 0.0, _LEAST_SPREAD)
    density *= (1 - hidden) / max(float((density * widths)[within].sum()), 1e-300)
    density = np.where(within, density, hidden * spread / (spread + fine - largest) ** 2)
    parts = -2 * np.log(np.maximum(density, 1e-300)).reshape(LEVELS.size, _PARTS)
    parts -= parts.min()
    least = parts.min(axis=1)
    mean = least - 2 * np.log(np.exp(-(parts - least[:, None]) / 2).mean(axis=1))
    return LevelDeviance(mean=mean, least=least)


def event_size(windows: Sequence[LatencySamples], *, allowed: float) -> float:
    """Return how many samples beyond the percentile come together: the variance of their number over the binomial one.

    It is that of blocks of time within windows.
    """
    total, freedom = _USUAL_SIZE * _USUAL_WEIGHT, _USUAL_WEIGHT
    for each in windows:
        latency = each.latency if each.latency > 0 else 0.0
        blocks = int((each.end - each.begin) / max(_BLOCK, _BLOCK_LATENCIES * latency))
        if blocks < _LEAST_BLOCKS or allowed * each.levels.size < _LEAST_BEYOND:
            continue
        beyond = (each.levels > np.quantile(each.levels, 1 - allowed)).astype(np.float64)
        place = ((each.due - each.begin) / (each.end - each.begin) * blocks).astype(np.intp)
        place = np.clip(place, 0, blocks - 1)
        counted = np.bincount(place, minlength=blocks)
        share, seen = float(beyond.mean()), counted > 0
        if not 0 < share < 1:
            continue
        apart = (np.bincount(place, beyond, minlength=blocks) - share * counted)[seen]
        total += float((apart**2 / counted[seen]).sum() / (share * (1 - share)))
        freedom += float(seen.sum() - 1)
    return max(1.0, total / freedom)
