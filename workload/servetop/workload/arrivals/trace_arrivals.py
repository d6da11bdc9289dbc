"""Arrival times of a trace, replayed at any rate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.workload.arrivals.arrival_process import AllAtOnce, ArrivalProcess
from servetop.workload.datasets.rows import DatasetRow
from servetop.workload.datasets.traces import RequestTrace


class TraceTimes:
    """One pass over a trace's times for a whole run: each process starts with the row after the last one used.

    So times and prompts stay aligned when the rate changes and when the next stage starts.
    """

    def __init__(self, trace: RequestTrace | None, *, rows: Iterator[DatasetRow] | None, rate: float | None) -> None:
        if trace is None or rows is None or not trace.timed or rate is None or not rate > 0:
            raise UsageError("--arrivals trace replays the times of a trace: give --dataset-name one that has times")
        self._rate = rate
        self._rows = rows
        self._next = next(self._rows)

    def at_rate(self, rate: float) -> ArrivalProcess:
        """Return the remaining times, stretched or compressed to a mean rate in requests per second."""
        if math.isinf(rate) or math.isinf(self._rate):
            return AllAtOnce()
        return _RemainingTimes(self, self._rate / rate)

    def times(self, stretch: float) -> Iterator[float]:
        """Seconds since the current row; every step consumes a row."""
        start = self._next.at or 0.0
        while True:
            yield ((self._next.at or 0.0) - start) * stretch
            self._next = next(self._rows)


@dataclass(frozen=True, slots=True)
class _RemainingTimes:
    """The remaining times, multiplied by `stretch`."""

    trace: TraceTimes
    stretch: float

    def due_times(self) -> Iterator[float]:
        """Times in seconds; only one iterator at a time, because all consume the same trace."""
        return self.trace.times(self.stretch)
