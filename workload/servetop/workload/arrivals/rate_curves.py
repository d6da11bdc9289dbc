"""Rates that change with time, and arrivals that follow them.

A process of rate 1 becomes one of rate r(t) when its times are read on the clock of the expected number of arrivals:
the k-th event of the first comes, in the second, when the integral of r reaches it (time change of a point process).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from servetop.workload.arrivals.arrival_process import ArrivalProcess

_PRECISION = 1e-9


class RateCurve(Protocol):
    """A rate over time, in requests per second; time counts from the curve's beginning."""

    def rate_at(self, at: float) -> float:
        """The rate in force."""
        ...

    def when(self, expected: float) -> float:
        """The time by which so many arrivals are to be expected."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RampCurve:
    """From `start` to `end` within `seconds`, then `end` for good; linear or exponential in time."""

    start: float
    end: float
    seconds: float
    exponential: bool = False

    @classmethod
    def of_length(cls, start: float, end: float, *, requests: float, exponential: bool) -> RampCurve:
        """The ramp that reaches `end` with its last of so many requests."""
        mean = (end - start) / _log_ratio(start, end) if exponential and start != end else (start + end) / 2
        return cls(start=start, end=end, seconds=requests / mean, exponential=exponential)

    @property
    def _growth(self) -> float:
        return _log_ratio(self.start, self.end) / self.seconds if self.exponential else 0.0

    def rate_at(self, at: float) -> float:
        """See RateCurve."""
        if at >= self.seconds:
            return self.end
        share = max(0.0, at) / self.seconds
        if self.exponential:
            return self.start * math.exp(self._growth * self.seconds * share)
        return self.start + (self.end - self.start) * share

    def when(self, expected: float) -> float:
        """See RateCurve."""
        growth = self._growth
        if growth:
            growth_so_far = expected * growth / self.start
            at = math.log1p(growth_so_far) / growth if growth_so_far > -1 else math.inf
            whole = (self.end - self.start) / growth
        else:
            slope = (self.end - self.start) / self.seconds
            under_root = self.start**2 + 2 * slope * expected
            at = 2 * expected / (self.start + math.sqrt(under_root)) if under_root >= 0 else math.inf
            whole = (self.start + self.end) / 2 * self.seconds
        return at if at <= self.seconds else self.seconds + max(0.0, expected - whole) / self.end

    def rest(self, at: float) -> RampCurve | None:
        """What is left of the ramp after a time; None when it is over."""
        if at >= self.seconds:
            return None
        left = self.seconds - max(0.0, at)
        return RampCurve(start=self.rate_at(at), end=self.end, seconds=left, exponential=self.exponential)


def _log_ratio(start: float, end: float) -> float:
    """log(end / start), exact for rates next to each other too."""
    return math.log1p((end - start) / start)


@dataclass(frozen=True, slots=True, kw_only=True)
class SineCurve:
    """A mean rate that swings by a share of itself; it begins at the mean and rises first."""

    mean: float
    period: float
    """Seconds."""
    amplitude: float
    """Share of the mean, 0 to 1."""

    def rate_at(self, at: float) -> float:
        """See RateCurve."""
        return self.mean * (1 + self.amplitude * math.sin(math.tau * at / self.period))

    def _expected(self, at: float) -> float:
        swing = self.amplitude * self.period / math.tau
        return self.mean * (at + swing * (1 - math.cos(math.tau * at / self.period)))

    def when(self, expected: float) -> float:
        """See RateCurve; by bisection between the earliest and the latest possible."""
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
        """Ascending seconds; rounding never turns two of them round."""
        last = 0.0
        for expected in self.unit.due_times():
            last = max(last, self.curve.when(expected))
            yield last
