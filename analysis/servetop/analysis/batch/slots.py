"""Assigns requests to the slots of a batch: each has one slot from its admission to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Interval = tuple[int, float, float]
"""A request's id, its start and its end in seconds; the end is not part of it."""


def assign_slots(intervals: Sequence[Interval], *, known: Mapping[int, int] | None = None) -> dict[int, int]:
    """Return the slot of each id, from 0: in order of start, the lowest slot that is free for the whole interval.

    `known` slots are kept, so that a request stays where it is while others come and go. An interval that is added
    later never moves one that began before.
    """
    kept = {key: known[key] for key, _, _ in intervals if key in known} if known else {}
    held = [(start, max(end, start), kept[key]) for key, start, end in intervals if key in kept]
    size, filled = len(intervals), len(held)
    starts, ends, slots = np.empty(size), np.empty(size), np.empty(size, dtype=np.int64)
    if held:
        starts[:filled], ends[:filled], slots[:filled] = zip(*held, strict=True)
    new = [(start, key, max(end, start)) for key, start, end in intervals if key not in kept]
    for start, key, end in sorted(new):
        overlapping = (starts[:filled] < end) & (ends[:filled] > start)
        taken = np.bincount(slots[:filled][overlapping], minlength=1) > 0
        free = np.flatnonzero(~taken)
        kept[key] = int(free[0]) if free.size else taken.size
        starts[filled], ends[filled], slots[filled] = start, end, kept[key]
        filled += 1
    return kept
