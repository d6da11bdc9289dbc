"""The requests that have been submitted and not ended, and those queued behind the concurrency limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.tick import LoadGauges
from servetop.loadgen.request.prerender import NumberedRequest
from servetop.loadgen.request.request_state import RequestState


class InFlightRequests:
    """Requests in flight in order of submission; queued requests in order of their due times."""

    def __init__(self) -> None:
        self._submitted: dict[RequestState, float] = {}
        self.queued: deque[NumberedRequest] = deque()
        """Due requests that wait because the concurrency limit is reached."""

    @property
    def count(self) -> int:
        """Number of requests in flight."""
        return len(self._submitted)

    @property
    def empty(self) -> bool:
        """No request is in flight or queued."""
        return not self._submitted and not self.queued

    def add(self, request: RequestState, at: float) -> None:
        """Add a request that is submitted at run time `at`."""
        self._submitted[request] = at

    def remove(self, request: RequestState) -> bool:
        """Remove a request that has ended; return whether it was in flight until now."""
        return self._submitted.pop(request, None) is not None

    def gauges(self, *, stage: int, max_concurrency: int | None) -> LoadGauges:
        """Return a tick's gauges."""
        return LoadGauges(stage=stage, max_concurrency=max_concurrency, in_flight=self.count, queued=len(self.queued))

    def newest(self, most: int, at: float) -> tuple[RequestInFlight, ...]:
        """Return the `most` requests submitted last, in order, as known at run time `at`."""
        newest = list(islice(reversed(self._submitted), most))
        return tuple(_as_known(request, at) for request in reversed(newest))

    def overdue(self, at: float, *, timeout: float) -> Iterator[RequestState]:
        """Remove and yield the requests that were submitted at least `timeout` seconds before `at`."""
        while self._submitted:
            oldest, since = next(iter(self._submitted.items()))
            if at - since < timeout:
                return
            yield oldest
            self.remove(oldest)

    def snapshot(self) -> tuple[RequestState, ...]:
        """Return a copy of the requests in flight, safe to iterate over while they end."""
        return tuple(self._submitted)


def _as_known(request: RequestState, at: float) -> RequestInFlight:
    """Read from the log of chunks, which contains all that arrived if the transport has caught up."""
    started = len(request.chunks) > 0
    return RequestInFlight(
        at=at,
        id=request.id,
        stage=request.stage,
        due=request.due_at,
        sent=request.sent,
        first_token_at=request.first_token_at,
        last_token_at=request.chunks.last_at if started else None,
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.chunks.tokens,
    )
