"""When requests are due: pure, seeded sequences of instants, in seconds after the stage began."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

_BLOCK = 256
"""Gaps are drawn in blocks: one call of numpy's generator costs as much as many numbers."""


class ArrivalProcess(Protocol):
    """A law of arrival; two iterators of one process give the same times."""

    def due_times(self) -> Iterator[float]:
        """Ascending seconds from 0, without end."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantArrivals:
    """Evenly spaced, the first at 0: a stage of d seconds at rate r gets r · d requests, and stages join seamlessly."""

    rate: float
    """Requests per second."""

    def due_times(self) -> Iterator[float]:
        """Ascending seconds from 0, without end and without accumulated rounding error."""
        return (index / self.rate for index in itertools.count())


@dataclass(frozen=True, slots=True)
class GammaArrivals:
    """Independent gamma-distributed gaps, as vLLM defines burstiness: shape = burstiness, mean = 1 / rate.

    Burstiness 1 is the Poisson process; the gaps' coefficient of variation is 1 / sqrt(burstiness).
    """

    rate: float
    """Requests per second."""
    burstiness: float
    seed: tuple[int, ...]

    def due_times(self) -> Iterator[float]:
        """Ascending seconds; the first comes after the first gap."""
        generator = np.random.default_rng(self.seed)
        scale = 1.0 / (self.rate * self.burstiness)
        last = 0.0
        while True:
            times = last + np.cumsum(generator.gamma(self.burstiness, scale, _BLOCK))
            last = float(times[-1])
            yield from times.tolist()


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """Every request is due at once."""

    def due_times(self) -> Iterator[float]:
        """Zeros without end."""
        return itertools.repeat(0.0)


def arrivals_for(rate: float, *, burstiness: float, seed: Sequence[int]) -> ArrivalProcess:
    """Evenly spaced for an infinite burstiness, all at once for an infinite rate, else gamma (1: Poisson)."""
    if math.isinf(rate):
        return AllAtOnce()
    if math.isinf(burstiness):
        return ConstantArrivals(rate)
    return GammaArrivals(rate, burstiness, tuple(seed))
