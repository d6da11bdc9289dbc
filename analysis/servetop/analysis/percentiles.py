"""Weighted percentiles, means and deviations, exact: each value counts as often as its weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Distinct values, ascending, and the number of times each was seen (≥ 1)."""

    values: FloatArray
    weights: IntArray

    @classmethod
    def of(cls, values: FloatArray, *, weights: IntArray | None = None) -> Distribution:
        """Build a distribution from values and their weights (default 1); NaN and weights below 1 are left out."""
        times = np.ones(values.size, np.int64) if weights is None else weights
        known = ~np.isnan(values) & (times > 0)
        if not known.all():
            values, times = values[known], times[known]
        order = np.argsort(values, kind="stable")
        return cls(*_added_up(values[order], times[order]))

    @classmethod
    def merged(cls, parts: Sequence[Distribution]) -> Distribution:
        """The distribution of the samples of all parts."""
        if len(parts) == 1:
            return parts[0]
        values = [np.empty(0), *(part.values for part in parts)]
        weights = [np.empty(0, np.int64), *(part.weights for part in parts)]
        return cls.of(np.concatenate(values), weights=np.concatenate(weights))

    @property
    def count(self) -> int:
        """Number of samples."""
        return int(self.weights.sum())

    @property
    def mean(self) -> float:
        """Mean of the samples; NaN without samples."""
        with np.errstate(over="ignore"):  # a damaged row's instant may be of any size
            return float(np.average(self.values, weights=self.weights)) if self.values.size else math.nan

    @property
    def std(self) -> float:
        """Standard deviation of the population (numpy's default, ddof 0); NaN without samples."""
        if not self.values.size:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):
            return math.sqrt(float(np.average((self.values - self.mean) ** 2, weights=self.weights)))

    def percentile(self, q: float) -> float:
        """The q-th percentile (0-100) by linear interpolation between order statistics (numpy's default)."""
        if not self.values.size:
            return math.nan
        cumulative = np.cumsum(self.weights)
        rank = q / 100 * (int(cumulative[-1]) - 1)
        low, high = np.searchsorted(cumulative, [math.floor(rank), math.ceil(rank)], side="right")
        below, above = float(self.values[low]), float(self.values[high])
        return below + (above - below) * (rank - math.floor(rank))


def _added_up(values: FloatArray, weights: IntArray) -> tuple[FloatArray, IntArray]:
    """Runs of equal values as one value with the sum of their weights."""
    if not values.size:
        return values, weights
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[first], np.add.reduceat(weights, first)
