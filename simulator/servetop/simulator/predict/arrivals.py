"""The client models of the studies: when requests come, as pure arrival generators for virtual time."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items

from servetop.simulator.scheduling.sim_request import SimRequest


class Bursts:
    """`per_burst` requests at once, then a timer of `period` seconds that runs in the engine's own event loop.

    An engine step blocks that loop, so a burst lands at the first iteration boundary after the timer, and the next
    period starts there (the Run:ai whitepaper's vLLM client, in-process). A last, smaller burst is not sent.
    """

    def __init__(self, requests: Items[SimRequest], *, per_burst: int, period: float = 1.0) -> None:
        self._requests = requests
        self._size = per_burst
        self._period = period
        self._sent = 0
        self._due = 0.0 if len(requests) >= per_burst else math.inf

    def due(self) -> float:
        """The end of the timer."""
        return self._due

    def land(self, boundary: float, /) -> tuple[float, Items[SimRequest]]:
        """One burst, stamped with the boundary."""
        burst = self._requests[self._sent : self._sent + self._size]
        self._sent += self._size
        more = self._sent + self._size <= len(self._requests)
        self._due = boundary + self._period if more else math.inf
        return boundary, burst


class OpenLoop:
    """Requests at absolute due times, whatever the engine does."""

    def __init__(self, requests: Items[SimRequest], due_times: Iterable[float]) -> None:
        self._requests = iter(requests)
        self._times: Iterator[float] = iter(due_times)
        self._due = next(self._times, math.inf)

    def due(self) -> float:
        """The next due time."""
        return self._due

    def land(self, _boundary: float, /) -> tuple[float, Items[SimRequest]]:
        """One request, stamped with its due time."""
        at, self._due = self._due, next(self._times, math.inf)
        request = next(self._requests, None)
        if request is None:
            self._due = math.inf
        return at, () if request is None else (request,)


def spaced(count: int, *, rate: float, scale: float = 1.0) -> Iterator[float]:
    """Every 1000 // rate whole milliseconds (the whitepaper's TensorRT-LLM client); above 1000/s all at once."""
    gap = (1000 // rate) / 1000 * scale
    return (index * gap for index in range(count))


def constant(count: int, *, rate: float, scale: float = 1.0) -> Iterator[float]:
    """Exactly 1/rate apart."""
    return (index * scale / rate for index in range(count))


def poisson(count: int, *, rate: float, seed: int, scale: float = 1.0) -> Iterator[float]:
    """Exponential gaps of mean 1/rate; an infinite rate sends all at once."""
    if math.isinf(rate):
        yield from at_once(count)
        return
    source = random.Random(seed)
    at = 0.0
    for _ in range(count):
        at += source.expovariate(rate) * scale
        yield at


def at_once(count: int) -> Iterator[float]:
    """All at time 0."""
    return (0.0 for _ in range(count))
