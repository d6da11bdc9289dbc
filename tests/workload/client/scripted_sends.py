"""The sends of the three clients against one scripted server: the load generator, a prediction, a virtual run."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender import heartbeat, sender
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.predict.cell_clients import VirtualSender
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.virtual_run.paced_client import PacedClient
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.stage_draws import DrawSeeds

SPEC = sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1")
FREE = ClientCosts(per_request=0.0, per_chunk=0.0, per_beat=0.0)
SEED = 5


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server does with a request: it responds, or refuses it, after `delay` seconds."""

    delay: float
    ok: bool = True


@dataclass
class ScriptedServer:
    """Handles the n-th request as the n-th reply says, from the first one again after the last one."""

    replies: Sequence[Reply]
    sends: list[float] = field(default_factory=list)
    _pending: list[tuple[float, int, Any, bool]] = field(default_factory=list)

    def take(self, request: object, at: float) -> None:
        """Note a request that was sent at a time; no two requests end at the same time."""
        number = len(self.sends)
        self.sends.append(at)
        reply = self.replies[number % len(self.replies)]
        end = at + reply.delay + (number + 1) * 2.0**-24
        heapq.heappush(self._pending, (end, number, request, reply.ok))

    def run(self, wake_at: Callable[[], float], wake: Callable[[float], None], end: Callable[..., None]) -> list[float]:
        """Wake the client when it wants, and end its requests, until nothing is left; return the times of its sends."""
        while (at := min(wake_at(), self._pending[0][0] if self._pending else math.inf)) < math.inf:
            if self._pending and self._pending[0][0] == at:
                _, _, request, ok = heapq.heappop(self._pending)
                end(request, at, ok)
            else:
                wake(at)
        return self.sends


def plan_of(stage: StageConfig, workload: WorkloadConfig) -> LoadPlan:
    draws = DrawSeeds(workload, seed=SEED, sweep=True).plan([(0, stage)])
    return LoadPlan(segments=((0, stage),), draws=draws, begin=0.0)


def sends_of_prediction(stage: StageConfig, workload: WorkloadConfig, replies: Sequence[Reply]) -> list[float]:
    client, server = VirtualSender(workload, SPEC, seed=SEED).client(stage), ScriptedServer(replies)
    index = itertools.count()

    def wake(now: float) -> None:
        at, requests = client.send(now)
        for request in requests:
            server.take(request, at)

    def end(request: Any, at: float, ok: bool) -> None:
        if ok:
            client.on_finished([SimSequence(request, index=next(index), arrival=0.0)], at)
        else:
            client.on_refused(request, at)

    return server.run(client.due, wake, end)


def sends_of_virtual_run(stage: StageConfig, workload: WorkloadConfig, replies: Sequence[Reply]) -> list[float]:
    client, server = (
        PacedClient(plan_of(stage, workload), workload, SPEC, seed=SEED, costs=FREE),
        ScriptedServer(replies),
    )

    def wake(now: float) -> None:
        for request in client.advance(now):
            server.take(request, now)

    def end(request: Any, at: float, ok: bool) -> None:
        client.ended(request, RequestStatus.OK if ok else RequestStatus.ERROR, at)

    return server.run(client.wake_at, wake, end)


class SetClock(MonotonicClock):
    """A clock that the test sets."""

    at = 0.0

    def now(self) -> float:
        return self.at


class SetTimer:
    """A timer that the test fires when its time has come."""

    def __init__(self) -> None:
        self.at = math.inf

    def arm(self, at: float) -> None:
        self.at = at

    def close(self) -> None:
        self.at = math.inf


@dataclass
class ScriptedTransport:
    """Passes requests to a scripted server."""

    server: ScriptedServer
    clock: SetClock

    def submit(self, request: RequestState) -> None:
        request.mark_sent(self.clock.now())
        self.server.take(request, self.clock.now())

    def withdraw(self, request: RequestState) -> None: ...
    def keep_ready(self, connections: int) -> None: ...
    def catch_up(self) -> None: ...
    async def close(self) -> None: ...


def sends_of_load_generator(stage: StageConfig, workload: WorkloadConfig, replies: Sequence[Reply]) -> list[float]:
    return asyncio.run(_sends_of_sender(stage, workload, replies))


async def _sends_of_sender(stage: StageConfig, workload: WorkloadConfig, replies: Sequence[Reply]) -> list[float]:
    """Never waits: the clock is set, and the timers are fired, by the scripted server."""
    clock, server, timer = SetClock(), ScriptedServer(replies), SetTimer()
    setup = SenderSetup(url="http://server", model="m", origin_ns=0, workload=workload)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sender, "deadline_timer", lambda _clock, _callback: timer)
        patch.setattr(heartbeat, "deadline_timer", lambda _clock, _callback: SetTimer())
        client = sender.Sender(
            setup,
            dialect_for(workload.endpoint, model="m", continuous_usage=False),
            clock=clock,
            transport=lambda _listener: ScriptedTransport(server, clock),
            report=lambda _report: None,
        )
    client.begin(plan_of(stage, workload))

    def wake(now: float) -> None:
        clock.at = now
        client.send_overdue()

    def end(request: RequestState, at: float, ok: bool) -> None:
        clock.at = at
        if ok:
            request.first_token_at = at
            client.response_complete(request, at)
            request.status, request.done_at = RequestStatus.OK, at
        else:
            request.abandon(RequestStatus.ERROR, at, reason="refused")
        client.request_ended(request)

    return server.run(lambda: timer.at, wake, end)
