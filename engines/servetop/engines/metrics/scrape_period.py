"""How often a watched server is read: less often if its page takes long, because its load pays for every reading."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.core.tick import TICK_SECONDS

READING_SHARE = 0.005
"""Largest part of a processor core that readings should take."""
LONGEST_PERIOD = 1.75
"""Seconds between two readings at most: a queue is known within 5 s, of which it lasts 3 s."""
RECENT = 5
"""Readings whose shortest time counts: a longer one waited for other work of the server."""


def scrape_period(times: Sequence[float], *, shortest: float) -> float:
    """Return the seconds from one reading to the next, a multiple of a tick, from `shortest` to LONGEST_PERIOD.

    `times` are those of the last RECENT readings in seconds; fewer decide nothing.
    """
    if len(times) < RECENT:
        return shortest
    ticks = math.ceil(min(times) / READING_SHARE / TICK_SECONDS - 1e-9)
    return max(shortest, min(ticks * TICK_SECONDS, LONGEST_PERIOD))
