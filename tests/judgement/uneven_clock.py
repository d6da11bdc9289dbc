"""The clock of an engine whose speed varies: all its steps within a block of time take longer by one factor."""

from __future__ import annotations

import math
from random import Random

import numpy as np

from servetop.core.arrays import FloatArray

BLOCK = 5.0
"""Seconds of a block."""
_GROW = 1000
"""Blocks that are drawn together."""


class UnevenClock:
    """Converts between wall time and the time that an engine of steady speed would have needed, both in seconds.

    `noise` is the standard deviation of the logarithm of a block's factor; at 0 both times are equal.
    """

    def __init__(self, noise: float, *, seed: int) -> None:
        self._noise = noise
        self._random = Random(f"clock {seed}")
        self._edges = np.zeros(1)
        """Engine time at the start of each block, and at the end of the last one."""

    def engine_time(self, wall: float) -> float:
        """Return how far the engine is at a time of the wall clock."""
        if not self._noise:
            return wall
        while len(self._edges) * BLOCK <= wall + BLOCK:
            self._grow()
        return float(np.interp(wall, BLOCK * np.arange(len(self._edges)), self._edges))

    def wall_times(self, engine: FloatArray) -> FloatArray:
        """Return when the engine was that far, NaN for NaN; shape as given."""
        if not self._noise:
            return engine
        while engine.size and self._edges[-1] < np.nanmax(engine, initial=0.0):
            self._grow()
        return np.asarray(np.interp(engine, self._edges, BLOCK * np.arange(len(self._edges))))

    def _grow(self) -> None:
        lengths = [BLOCK / math.exp(self._noise * self._random.gauss()) for _ in range(_GROW)]
        self._edges = np.concatenate([self._edges, self._edges[-1] + np.cumsum(lengths)])
