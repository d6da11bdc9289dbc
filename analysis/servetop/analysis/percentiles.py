"""Exact weighted percentiles, means and standard deviations: each value counts as often as its weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Distinct values, ascending, and the number of samples with each (≥ 1)."""

    values: FloatArray
    weights: IntArray

    @classmethod
    def of(cls, values: FloatArray, *, weights: IntArray | None = None) -> Distribution:
        """Build a distribution from values and their weights (default 1), omitting NaN and weights below 1."""
        weights = np.ones(values.size, np.int64) if weights is None else weights
        known = ~np.isnan(values) & (weights > 0)
        if not known.all():
            values, weights = values[known], weights[known]
        order = np.argsort(values, kind="stable")
        return cls(*_combined(values[order], weights[order]))

    @classmethod
    def merged(cls, parts: Sequence[Distribution]) -> Distribution:
        """Return the distribution of the samples of all parts."""
        if len(parts) == 1:
            return parts[0]
        values = [np.empty(0), *(part.values for part in parts)]
        weights = [np.empty(0, np.int64), *(part.weights for part in parts)]
        return cls.of(np.concatenate(values), weights=np.concatenate(weights))

    @property
    def count(self) -> int:
        """The number of samples."""
        return int(self.weights.sum())

    @property
    def mean(self) -> float:
        """The mean of the samples; NaN without samples."""
        with np.errstate(over="ignore"):  # a time in a damaged row may be of any size
            return float(np.average(self.values, weights=self.weights)) if self.values.size else math.nan

    @property
    def std(self) -> float:
        """The population standard deviation (NumPy's default, ddof 0); NaN without samples."""
        if not self.values.size:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):
            return math.sqrt(float(np.average((self.values - self.mean) ** 2, weights=self.weights)))

    def percentile(self, q: float) -> float:
        """Return the q-th percentile (0..100) by linear interpolation between order statistics (NumPy's default)."""
        if not self.values.size:
            return math.nan
        cumulative = np.cumsum(self.weights)
        rank = q / 100 * (int(cumulative[-1]) - 1)
        low, high = np.searchsorted(cumulative, [math.floor(rank), math.ceil(rank)], side="right")
        below, above = float(self.values[low]), float(self.values[high])
        return below + (above - below) * (rank - math.floor(rank))


def _combined(values: FloatArray, weights: IntArray) -> tuple[FloatArray, IntArray]:
    """Combine runs of equal values into one value with the sum of their weights."""
    if not values.size:
        return values, weights
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[first], np.add.reduceat(weights, first)
