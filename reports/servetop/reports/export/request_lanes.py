"""Puts the requests of a recording into lanes in which none overlaps another, as slots of a batch."""

from __future__ import annotations

import heapq

import numpy as np

from servetop.core.arrays import FloatArray, IntArray


def request_lanes(begin: FloatArray, end: FloatArray, *, most: int) -> IntArray:
    """Return the lane of each request, from 0; -1 for those that would need more than `most` lanes.

    `begin` and `end` are in seconds, of shape (requests,). The lowest lane that is free is taken.
    """
    lanes = np.full(begin.shape, -1, dtype=np.int64)
    free: list[int] = list(range(most))
    taken: list[tuple[float, int]] = []
    for place in np.argsort(begin, kind="stable").tolist():
        while taken and taken[0][0] <= begin[place]:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            lane = lanes[place] = heapq.heappop(free)
            heapq.heappush(taken, (float(end[place]), lane))
    return lanes
