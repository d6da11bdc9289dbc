"""The requests under way: in flight, or held back by the concurrency limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from servetop.core.tick import LoadGauges
from servetop.loadgen.request.request_state import RequestState
from servetop.workload.stage_run import Due


class InFlightRequests:
    """In flight in the order in which they were submitted, waiting in the order in which they are due."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._in_flight: dict[RequestState, float] = {}
        self.waiting: deque[Due] = deque()

    @property
    def in_flight(self) -> int:
        """Requests submitted and not ended."""
        return len(self._in_flight)

    @property
    def empty(self) -> bool:
        """Nothing is under way."""
        return not self._in_flight and not self.waiting

    def has_room(self, limit: int | None) -> bool:
        """Whether one more may be in flight."""
        return limit is None or len(self._in_flight) < limit

    def add(self, exchange: RequestState, at: float) -> None:
        """It was submitted at run time `at`."""
        self._in_flight[exchange] = at

    def remove(self, exchange: RequestState) -> None:
        """It has ended."""
        self._in_flight.pop(exchange, None)

    def gauges(self, *, stage: int, max_concurrency: int | None) -> LoadGauges:
        """The counts of a tick, under the limit in force."""
        return LoadGauges(
            stage=stage, max_concurrency=max_concurrency, in_flight=self.in_flight, queued=len(self.waiting)
        )

    def overdue(self, at: float) -> Iterator[RequestState]:
        """Those that were submitted more than the timeout before `at`."""
        while self._in_flight:
            oldest, since = next(iter(self._in_flight.items()))
            if at - since < self._timeout:
                return
            yield oldest
            self.remove(oldest)

    def all_in_flight(self) -> tuple[RequestState, ...]:
        """A copy, safe to act on."""
        return tuple(self._in_flight)
