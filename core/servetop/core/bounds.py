"""Bounds of numbers from outside: an impossible value would spoil every sum it enters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from servetop.core.arrays import FloatArray, np

LARGEST_VALUE = 1e18
"""A larger value is invalid; sums of smaller ones neither overflow nor exceed 64 bits."""


def bounded(value: float | int | None) -> float:
    """The value as a float; NaN, "not exported", for None and for values negative, NaN or above LARGEST_VALUE."""
    return float(value) if value is not None and 0 <= value <= LARGEST_VALUE else math.nan


def time_of_page(value: float | int | None) -> float:
    """The time of a metrics page, seconds; negative for one that a Prometheus server has from before the run."""
    return float(value) if value is not None and abs(value) <= LARGEST_VALUE else math.nan


def bounds_of(name: str) -> Callable[[float | int | None], float]:
    """Return what bounds the values of a field of `EngineSample`."""
    return time_of_page if name.startswith("scrape_") else bounded


def all_bounded(values: Sequence[float | None] | FloatArray, *, name: str = "") -> FloatArray:
    """Return `bounded` of each value, or for the times of pages `time_of_page`; shape (values,)."""
    found = np.array(values, dtype=np.float64)  # None becomes NaN
    least = -LARGEST_VALUE if name.startswith("scrape_") else 0
    return np.where((found >= least) & (found <= LARGEST_VALUE), found, np.nan)
