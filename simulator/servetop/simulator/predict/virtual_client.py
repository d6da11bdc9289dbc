"""The load generator's client in virtual time: what it sends when, without a network or a clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from servetop.core.config import WorkloadConfig
from servetop.simulator.predict.client_requests import ClientRequest, ClientRequests
from servetop.workload.client.load_client import LoadClient
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_draws import StageDraws
from servetop.workload.stages.stage_run import Due, StageArrivals


class Sending(NamedTuple):
    """A request that the client sends."""

    request: ClientRequest
    due: Due
    at: float
    """When it is sent: when it is due, or later."""
    limited: bool
    """It waited for the concurrency limit."""


class VirtualClient:
    """One sender of a plan; `requests` returns those of a stage. Sending takes no time."""

    def __init__(
        self,
        plan: LoadPlan,
        workload: WorkloadConfig,
        *,
        arrivals: StageArrivals,
        requests: Callable[[StageDraws], ClientRequests],
    ) -> None:
        self._requests = requests
        self._client: LoadClient[ClientRequest] = LoadClient(workload)
        self.schedule: Schedule = self._client.begin(plan, arrivals=arrivals, now=0.0)
        self.wake_at = plan.begin
        """Run time of the next call of `advance`; infinity if nothing is sent before a request ends."""
        self.in_flight = 0
        self._queued: deque[tuple[Due, ClientRequest | None]] = deque()
        """Requests that wait for the concurrency limit; they are chosen when they are sent, except later turns."""
        self._stage = -1
        self._stage_requests: ClientRequests | None = None

    @property
    def queued(self) -> int:
        """Requests that wait for the concurrency limit."""
        return len(self._queued)

    @property
    def limit(self) -> int | None:
        """The concurrency limit; after a stage, its last one stays in force."""
        latest = self.schedule.latest_stage
        return None if latest is None else latest.limit

    def advance(self, now: float) -> list[Sending]:
        """Return the requests that are sent at `now`, in order."""
        client, schedule = self._client, self.schedule
        admitted: list[tuple[Due, ClientRequest | None]] = [(due, None) for due in schedule.due(now)]
        client.follow_pauses()
        if client.turns.thinking:
            admitted += [(Due(turn.stage, turn.at), turn.prompt) for turn in client.turns.due(now, schedule)]
        found, limit = [], self.limit
        for due, turn in admitted:
            if not self._queued and client.has_room(in_flight=self.in_flight, limit=limit):
                found.append(self._send(due, turn, now))
            else:
                self._queued.append((due, turn))
        while self._queued and client.has_room(in_flight=self.in_flight, limit=limit):
            found.append(self._send(*self._queued.popleft(), now, limited=True))
        while client.closed and (slot := client.take_slot(now, in_flight=self.in_flight, limit=limit)) is not None:
            found.append(self._send(slot, None, now))
        client.drained(now, unfinished=self.in_flight + len(self._queued))
        self.wake_at = client.wake_at(now)
        return found

    def ended(
        self, request: ClientRequest, at: float, *, stage: int = 0, ok: bool = True, failed: bool = False
    ) -> None:
        """A request left the server; `ok`: it succeeded, `failed`: it failed before its first token."""
        self.in_flight -= 1
        turn = self._following(request) if ok else None
        if turn is None:
            self._client.freed(at)
        else:
            self._client.turns.add(turn, after=at, stage=stage, number=turn.number)
        self._client.ended(at, failed=failed)

    def cancel_queued(self) -> None:
        """Drop the requests that wait for the concurrency limit, and the conversations whose users are thinking."""
        self._queued.clear()
        self._client.turns.cancel()

    def _following(self, request: ClientRequest) -> ClientRequest | None:
        """Return the next turn of the request's conversation."""
        if request.lengths is None or self._stage_requests is None:
            return None
        return self._stage_requests.next_turn(request)

    def _send(self, due: Due, turn: ClientRequest | None, now: float, *, limited: bool = False) -> Sending:
        self.in_flight += 1
        request = self._take(due.stage) if turn is None else turn
        return Sending(request, due, max(now, due.at), limited)

    def _take(self, stage: int) -> ClientRequest:
        """Take the next request of a stage."""
        if self._stage_requests is None or stage != self._stage:
            self._stage, self._stage_requests = stage, self._requests(self.schedule.plan.draws_of(stage))
        return self._stage_requests.take()
