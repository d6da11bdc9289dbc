"""Assigns requests to the slots of a batch: each has one slot from its admission to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Interval = tuple[int, float, float]
"""A request's id, and the half-open interval [start, end) in seconds."""


def assign_slots(intervals: Sequence[Interval], *, known: Mapping[int, int] | None = None) -> dict[int, int]:
    """Return the slot of each id, from 0: in order of start, the lowest slot that is free for the whole interval.

    `known` slots are kept, so that a request stays where it is while others come and go. An interval that is added
    later never moves one that began before.
    """
    kept = {key: known[key] for key, _, _ in intervals if key in known} if known else {}
    held = [(start, max(end, start), kept[key]) for key, start, end in intervals if key in kept]
    starts, ends, slots = np.array(held).reshape(-1, 3).T
    slots = slots.astype(np.int64)
    used = int(slots.max(initial=-1)) + 1
    free_from = np.full(used + len(intervals), -np.inf)
    for start, key, end in sorted((start, key, end) for key, start, end in intervals if key not in kept):
        free = free_from[: used + 1] <= start  # those placed before began earlier
        if held:
            free[slots[(starts < end) & (ends > start)]] = False
        kept[key] = slot = int(free.argmax())
        free_from[slot] = max(end, start)
        used = max(used, slot + 1)
    return kept
