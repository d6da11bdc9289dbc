"""Which numbers from outside are taken: what no engine can count would spoil every sum that it enters."""

from __future__ import annotations

import math

LARGEST_VALUE = 1e18
"""A greater sample is a broken one, and is not known: sums of what is below it neither overflow nor leave 64 bits."""


def bounded(value: float | int | None) -> float:
    """The value as a float; NaN, "not exported", for None and for what is negative, NaN or above LARGEST_VALUE."""
    return float(value) if value is not None and 0 <= value <= LARGEST_VALUE else math.nan
