"""The arrival times of a trace, at any rate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.workload.arrivals.arrival_process import AllAtOnce, ArrivalProcess
from servetop.workload.datasets.rows import DatasetRow
from servetop.workload.datasets.traces import RequestTrace


class TraceTimes:
    """One walk through a trace's times for a whole run: a process begins with the row that the last one had not used.

    So times and prompts stay together when the rate is changed, and when a stage follows another.
    """

    def __init__(self, trace: RequestTrace | None, *, rate: float | None) -> None:
        if trace is None or not trace.timed or rate is None or not rate > 0:
            raise UsageError("--arrivals trace replays the times of a trace: give --dataset-name one that has times")
        self._rate = rate
        self._rows: Iterator[DatasetRow] = trace.endless()
        self._next = next(self._rows)

    def at_rate(self, rate: float) -> ArrivalProcess:
        """The times from here on, stretched so that their mean rate is this one."""
        if math.isinf(rate) or math.isinf(self._rate):
            return AllAtOnce()
        return _Walk(self, self._rate / rate)

    def times(self, stretch: float) -> Iterator[float]:
        """Seconds since the row at which the walk stands; each step uses that row up."""
        start = self._next.at or 0.0
        while True:
            yield ((self._next.at or 0.0) - start) * stretch
            self._next = next(self._rows)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The rest of the walk, stretched."""

    trace: TraceTimes
    stretch: float

    def due_times(self) -> Iterator[float]:
        """See ArrivalProcess; only one iterator at a time, as all walk the same trace."""
        return self.trace.times(self.stretch)
