"""Rates that change with time, and arrivals that follow them.

A process of rate 1 becomes one of rate r(t) by a time change: an event at time k of the first occurs, in the second,
when the integral of r reaches k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from servetop.workload.arrivals.arrival_process import ArrivalProcess

_PRECISION = 1e-9


class RateCurve(Protocol):
    """A rate over time, in requests per second; time is in seconds from the start of the curve."""

    def rate_at(self, at: float) -> float:
        """Return the rate at a time."""
        ...

    def when(self, expected: float) -> float:
        """Return the time at which the expected number of arrivals reaches `expected`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RampCurve:
    """A ramp from `start` to `end` within `seconds`, constant after that; linear or exponential in time."""

    start: float
    end: float
    seconds: float
    exponential: bool

    @classmethod
    def of_length(cls, start: float, end: float, *, requests: float, exponential: bool) -> RampCurve:
        """Return the ramp that reaches `end` with the last of a number of requests."""
        mean = (end - start) / _log_ratio(start, end) if exponential and start != end else (start + end) / 2
        return cls(start=start, end=end, seconds=requests / mean, exponential=exponential)

    @property
    def _growth(self) -> float:
        return _log_ratio(self.start, self.end) / self.seconds if self.exponential else 0.0

    def rate_at(self, at: float) -> float:
        if at >= self.seconds:
            return self.end
        fraction = max(0.0, at) / self.seconds
        if self.exponential:
            return self.start * math.exp(self._growth * self.seconds * fraction)
        return self.start + (self.end - self.start) * fraction

    def when(self, expected: float) -> float:
        growth = self._growth
        if growth:
            growth_so_far = expected * growth / self.start
            at = math.log1p(growth_so_far) / growth if growth_so_far > -1 else math.inf
            total = (self.end - self.start) / growth
        else:
            slope = (self.end - self.start) / self.seconds
            under_root = self.start**2 + 2 * slope * expected
            at = 2 * expected / (self.start + math.sqrt(under_root)) if under_root >= 0 else math.inf
            total = (self.start + self.end) / 2 * self.seconds
        return at if at <= self.seconds else self.seconds + max(0.0, expected - total) / self.end

    def rest(self, at: float) -> RampCurve | None:
        """Return the rest of the ramp after a time; None when it is over."""
        if at >= self.seconds:
            return None
        left = self.seconds - max(0.0, at)
        return RampCurve(start=self.rate_at(at), end=self.end, seconds=left, exponential=self.exponential)


def _log_ratio(start: float, end: float) -> float:
    """log(end / start), exact also for nearly equal rates."""
    return math.log1p((end - start) / start)


@dataclass(frozen=True, slots=True, kw_only=True)
class SineCurve:
    """A sinusoidal rate that starts at its mean and rises first."""

    mean: float
    period: float
    """Seconds."""
    amplitude: float
    """Fraction of the mean, 0 to 1."""

    def rate_at(self, at: float) -> float:
        return self.mean * (1 + self.amplitude * math.sin(math.tau * at / self.period))

    def _expected(self, at: float) -> float:
        swing = self.amplitude * self.period / math.tau
        return self.mean * (at + swing * (1 - math.cos(math.tau * at / self.period)))

    def when(self, expected: float) -> float:
        """Return the time of an expected number of arrivals, by bisection between its bounds."""
        late = expected / self.mean
        early = max(0.0, late - self.amplitude * self.period / math.pi)
        while late - early > _PRECISION * max(1.0, late):
            middle = (early + late) / 2
            if self._expected(middle) < expected:
                early = middle
            else:
                late = middle
        return late


@dataclass(frozen=True, slots=True)
class CurvedArrivals:
    """A process of rate 1 that follows a curve."""

    unit: ArrivalProcess
    curve: RateCurve

    def due_times(self) -> Iterator[float]:
        """Ascending times in seconds, also where rounding would reverse two of them."""
        last = 0.0
        for expected in self.unit.due_times():
            last = max(last, self.curve.when(expected))
            yield last
