"""Ends requests from the client side: request timeout, random cancellation, drain timeout and stop commands."""

from __future__ import annotations

from collections.abc import Callable

from servetop.core.clock import Clock
from servetop.core.config import WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.loadgen.request.prerender import PrerenderQueue
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.in_flight import InFlightRequests
from servetop.loadgen.transport.transport import Transport


class RandomCancellation:
    """Cancels the requests whose prompts say so (`cancel_fraction`) mid-stream, each after its number of tokens."""

    def __init__(self) -> None:
        self._cancel_after: dict[RequestState, int] = {}

    def consider(self, request: RequestState) -> None:
        """Remember a request that is about to be sent if it is to be cancelled."""
        if request.prompt.cancel_after is not None:
            self._cancel_after[request] = request.prompt.cancel_after

    def due(self) -> list[RequestState]:
        """Return the requests to cancel now; called at every heartbeat, so a cancellation is up to 20 ms late."""
        if not self._cancel_after:
            return []
        for request in self._cancel_after:
            request.flush()
        over = [each for each, tokens in self._cancel_after.items() if each.status or each.chunks.tokens >= tokens]
        for request in over:
            del self._cancel_after[request]
        return [request for request in over if request.status is None]


class Cancellation:
    """Enforces the request timeout and cancels requests; each one that ends is passed to `finish`."""

    def __init__(
        self,
        workload: WorkloadConfig,
        *,
        clock: Clock,
        transport: Transport,
        finish: Callable[[RequestState], object],
    ) -> None:
        self._timeout = workload.timeout
        self._random = RandomCancellation()
        self._clock = clock
        self._transport = transport
        self._finish = finish
        self.consider = self._random.consider

    def expire(self, in_flight: InFlightRequests) -> bool:
        """End the requests that have timed out or are to be cancelled at random; return whether there were any."""
        overdue = list(in_flight.overdue(self._clock.now(), timeout=self._timeout))
        for request in overdue:
            self._abandon(request, RequestStatus.TIMEOUT, f"no complete response within {self._timeout:g} s")
        cancelled = self._random.due()
        for request in cancelled:
            self._abandon(request, RequestStatus.CANCELLED, "cancelled by the client (cancel_fraction)")
        return bool(overdue or cancelled)

    def cancel_in_flight(self, in_flight: InFlightRequests, reason: str) -> int:
        """Cancel every request in flight and return their number."""
        requests = in_flight.snapshot()
        for request in requests:
            self._abandon(request, RequestStatus.CANCELLED, reason)
        return len(requests)

    def cancel_queued(self, in_flight: InFlightRequests, prerender: PrerenderQueue, at: float, *, reason: str) -> None:
        """Cancel the requests that wait for the concurrency limit; they are recorded without ever being sent."""
        while in_flight.queued:
            request = prerender.take(in_flight.queued.popleft(), limited=True)
            request.abandon(RequestStatus.CANCELLED, at, reason=reason)
            self._finish(request)

    def _abandon(self, request: RequestState, status: RequestStatus, reason: str) -> None:
        request.abandon(status, self._clock.now(), reason=reason)
        self._transport.withdraw(request)
        self._finish(request)
