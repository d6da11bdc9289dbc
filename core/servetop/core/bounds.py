"""Bounds of numbers from outside: an impossible value would spoil every sum it enters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.arrays import FloatArray, np

LARGEST_VALUE = 1e18
"""A larger value is invalid; sums of smaller ones neither overflow nor exceed 64 bits."""


def bounded(value: float | int | None) -> float:
    """The value as a float; NaN, "not exported", for None and for values negative, NaN or above LARGEST_VALUE."""
    return float(value) if value is not None and 0 <= value <= LARGEST_VALUE else math.nan


def all_bounded(values: Sequence[float | None]) -> FloatArray:
    """Return `bounded` of each value; shape (values,)."""
    found = np.array(values, dtype=np.float64)  # None becomes NaN
    return np.where((found >= 0) & (found <= LARGEST_VALUE), found, np.nan)
