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
        known = ~np.isnan(values) if weights is None else ~np.isnan(values) & (weights > 0)
        values = values[known]
        if weights is None:
            values.sort(kind="stable")
            return cls(*_counted(values))
        weights, order = weights[known], np.argsort(values, kind="stable")
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
        return self._average(self.values.copy()) if self.values.size else math.nan

    @property
    def std(self) -> float:
        """The population standard deviation (NumPy's default, ddof 0); NaN without samples."""
        if not self.values.size:
            return math.nan
        deviations = self.values - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            np.square(deviations, out=deviations)
            return math.sqrt(self._average(deviations))

    def _average(self, values: FloatArray) -> float:
        """Return the weighted mean of values, one for each of the distribution, and overwrite them to save memory."""
        with np.errstate(over="ignore", invalid="ignore"):  # a time in a damaged row may be of any size
            np.multiply(values, self.weights, out=values)
            return float(values.sum() / self.weights.sum(dtype=np.float64))

    def percentile(self, q: float) -> float:
        """Return the q-th percentile (0..100) by linear interpolation between order statistics (NumPy's default)."""
        return float(self.percentiles(np.array([q]))[0])

    def percentiles(self, q: FloatArray) -> FloatArray:
        """Return several percentiles (0..100) at once; NaN without samples."""
        if not self.values.size:
            return np.full(q.shape, math.nan)
        cumulative = np.cumsum(self.weights)
        rank = q / 100 * (int(cumulative[-1]) - 1)
        lower = np.floor(rank)
        low, high = (np.searchsorted(cumulative, each, side="right") for each in (lower, np.ceil(rank)))
        below, above = self.values[low], self.values[high]
        return np.asarray(below + (above - below) * (rank - lower))


def _combined(values: FloatArray, weights: IntArray) -> tuple[FloatArray, IntArray]:
    """Combine runs of equal values into one value with the sum of their weights."""
    if not values.size:
        return values, weights
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[first], np.add.reduceat(weights, first)


def _counted(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Combine runs of equal values into one value with their number."""
    if not values.size:
        return values, np.empty(0, np.int64)
    starts = np.concatenate([[True], values[1:] != values[:-1]])
    if starts.all():
        return values, np.ones(values.size, np.int64)
    first = np.flatnonzero(starts)
    return values[first], np.diff(first, append=values.size)
