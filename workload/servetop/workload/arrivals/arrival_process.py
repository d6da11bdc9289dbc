"""When requests are due: pure, seeded sequences of instants, in seconds after the stage began."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
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
class BurstArrivals:
    """All requests of a period at its beginning: `rate` requests each second, as the Run:ai study's vLLM client sent.

    Where rate · period is no whole number, bursts of the two whole numbers next to it alternate.
    """

    rate: float
    """Requests per second."""
    period: float = 1.0
    """Seconds."""

    def due_times(self) -> Iterator[float]:
        """Multiples of the period, each as often as its burst is large; the first burst, at 0, is never empty."""
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
    """One request each 1000 // rate whole milliseconds, as the Run:ai study's TensorRT-LLM client sent them.

    Faster than asked where 1000 / rate is no whole number; never faster than one a millisecond.
    """

    rate: float
    """Requests per second."""

    def due_times(self) -> Iterator[float]:
        """Multiples of whole milliseconds, from 0."""
        gap_ms = max(1, int(1000 // self.rate))
        return (index * gap_ms / 1000 for index in itertools.count())


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """Every request is due at once."""

    def due_times(self) -> Iterator[float]:
        """Zeros without end."""
        return itertools.repeat(0.0)
