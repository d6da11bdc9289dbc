"""Standard errors that respect dependence: a series is cut into slices, whose means are nearly independent."""

from __future__ import annotations

import math

import numpy as np

from servetop.core.arrays import FloatArray

SLICES = 16
"""Slices of a run: enough to estimate a variance, few enough that each is longer than what correlates neighbours."""


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean by batch means (Law: Simulation Modeling, 9.5.3); NaN for few values.

    It is at least that of independent values, because a variance of 16 slices can be too small by chance.
    """
    if values.size < 2 * SLICES:
        return math.nan
    means = np.array([part.mean() for part in np.array_split(values, SLICES)])
    independent = float(values.std(ddof=1)) / math.sqrt(values.size)
    return max(float(means.std(ddof=1)) / math.sqrt(SLICES), independent)


def effective_size(values: FloatArray) -> float:
    """Return how many independent values tell as much about the mean; their number for constant values."""
    spread, error = float(values.std(ddof=1)) if values.size > 1 else 0.0, standard_error(values)
    return (spread / error) ** 2 if spread > 0 and error > 0 else float(values.size)


def ratio_error(numerators: FloatArray, denominators: FloatArray) -> float:
    """Return the standard error of sum(numerators) / sum(denominators), by the jackknife over slices of equal weight.

    NaN for fewer values than slices with a denominator.
    """
    known = denominators > 0
    if known.sum() < SLICES:
        return math.nan
    weights = np.cumsum(denominators[known])
    number = np.minimum((weights / weights[-1] * SLICES).astype(np.int64), SLICES - 1)
    above, below = (np.bincount(number, weights=each[known], minlength=SLICES) for each in (numerators, denominators))
    kept = below.sum() - below
    without = (above.sum() - above)[kept > 0] / kept[kept > 0]
    return math.sqrt((SLICES - 1) / SLICES * float(((without - without.mean()) ** 2).sum()))
