"""Arrival processes: pure, seeded sequences of due times, in seconds after the start of the stage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

_BLOCK = 256
"""Gaps are drawn in blocks: a call of NumPy's generator costs as much for many numbers as for one."""


class ArrivalProcess(Protocol):
    """When requests are due; all iterators of one process give the same times."""

    def due_times(self) -> Iterator[float]:
        """Ascending times in seconds, from 0, without end."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantArrivals:
    """Evenly spaced requests, the first at 0: a stage of d seconds at rate r has r · d, and stages join seamlessly."""

    rate: float
    """Requests per second."""

    def due_times(self) -> Iterator[float]:
        """Multiples of 1 / rate, without accumulated rounding error."""
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
        """Ascending times; the first one is the first gap."""
        generator = np.random.default_rng(self.seed)
        scale = 1.0 / (self.rate * self.burstiness)
        last = 0.0
        while True:
            times = last + np.cumsum(generator.gamma(self.burstiness, scale, _BLOCK))
            last = float(times[-1])
            yield from times.tolist()


@dataclass(frozen=True, slots=True)
class BurstArrivals:
    """All requests of a period at its start: with the period of one second, `rate` requests at once every second.

    Where rate · period is not an integer, bursts of the two nearest integers alternate.
    """

    rate: float
    """Requests per second."""
    period: float = 1.0
    """Seconds."""

    def due_times(self) -> Iterator[float]:
        """Multiples of the period, each repeated for every request of its burst; the first burst is never empty."""
        size = self.rate * self.period
        sent = 0
        for burst in itertools.count():
            until = math.ceil((burst + 1) * size - 1e-9)
            yield from itertools.repeat(burst * self.period, until - sent)
            sent = until


@dataclass(frozen=True, slots=True)
class InProcessBursts:
    """Bursts of a client that runs in the engine's own event loop, as the Run:ai study's vLLM client did.

    `size` requests at once, then a timer of `period` seconds. An engine step blocks the timer, so a burst is sent at
    the first iteration boundary after it, and the next period starts there; a last, smaller burst is not sent. A
    client outside of the engine sends the bursts every `period` seconds.
    """

    rate: float
    """Requests per second."""

    @property
    def size(self) -> int:
        """Requests of one burst: those of a second, at least one."""
        return max(round(self.rate), 1)

    @property
    def period(self) -> float:
        """Seconds between bursts; 1 for whole rates."""
        return self.size / self.rate

    def due_times(self) -> Iterator[float]:
        """Multiples of the period, each `size` times."""
        return (burst * self.period for burst in itertools.count() for _ in range(self.size))


@dataclass(frozen=True, slots=True)
class SpacedArrivals:
    """One request every 1000 // rate milliseconds, as the Run:ai study's TensorRT-LLM client sent them.

    The true rate is higher than `rate` where 1000 / rate is not an integer, and never above one per millisecond.
    """

    rate: float
    """Requests per second."""

    def due_times(self) -> Iterator[float]:
        """Multiples of whole milliseconds, from 0."""
        gap_ms = max(1, int(1000 // self.rate))
        return (index * gap_ms / 1000 for index in itertools.count())


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """All requests are due at time 0."""

    def due_times(self) -> Iterator[float]:
        """Zeros without end."""
        return itertools.repeat(0.0)
