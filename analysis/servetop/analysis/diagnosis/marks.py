"""What a rule found in the ticks: where its episodes open and close, and their worst values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.trailing import first_in, ticks_of
from servetop.core.arrays import BoolArray, FloatArray

WINDOW = 10.0
"""Seconds of the statistics that panels show, over which rates and fractions are computed."""
LOOKBACK = 60.0
"""Seconds before its detection in which the beginning of an episode is searched."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Marks:
    """The result of one rule for each tick; arrays of shape (ticks,)."""

    opens: BoolArray
    """An episode is open from this tick on."""
    closes: BoolArray
    """An episode that is open is closed."""
    worst: FloatArray
    """The value whose maximum is the episode's worst."""
    amount: FloatArray
    """Counts that add up to the episode's total."""
    begin: Callable[[int], int]
    """Returns the tick at which an episode that is detected at a tick began."""
    active: BoolArray
    """Ticks in which the condition itself held: an episode ends with the last of them."""


def marks(
    *,
    opens: BoolArray,
    closes: BoolArray,
    worst: FloatArray,
    active: BoolArray,
    amount: FloatArray | None = None,
    begin: Callable[[int], int] | None = None,
) -> Marks:
    """Return the marks of a rule; by default its episodes begin with the first active tick of WINDOW."""
    window = ticks_of(WINDOW)
    return Marks(
        opens=opens,
        closes=closes & ~opens,
        worst=worst,
        amount=np.zeros(opens.shape) if amount is None else amount,
        begin=(lambda position: first_in(active, position, window)) if begin is None else begin,
        active=active,
    )
