"""Requests that the client ends: timeouts, random cancellations, queued requests."""

import itertools
from collections.abc import Iterator
from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.core.interfaces.dialect import Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.prerender import NumberedRequest, PrerenderQueue
from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.cancellation import Cancellation
from servetop.loadgen.sender.in_flight import InFlightRequests
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.prompts.random_cancellation import CancelledPrompts
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.stage_run import Due


class SetClock(MonotonicClock):
    at = 0.0

    def now(self) -> float:
        return self.at


class Withdrawals:
    """A transport that only notes what is withdrawn."""

    def __init__(self) -> None:
        self.withdrawn: list[int] = []

    def withdraw(self, request: RequestState) -> None:
        self.withdrawn.append(request.id)


class SamePrompts:
    """The same prompt again and again."""

    def prompts(self) -> Iterator[Prompt]:
        return itertools.repeat(Prompt(text="x", input_tokens=1, output_tokens=8))


class Load:
    """Requests in flight and the cancellation that ends them."""

    def __init__(self, **workload: Any) -> None:
        config = WorkloadConfig(**workload)
        self.clock, self.transport, self.in_flight = SetClock(), Withdrawals(), InFlightRequests()
        self.ended: list[RequestState] = []
        transport: Any = self.transport
        self.cancellation = Cancellation(config, clock=self.clock, transport=transport, finish=self.ended.append)
        prompts = enumerate(CancelledPrompts(SamePrompts(), config.cancel_fraction, (3, 0)).prompts())
        dialect = dialect_for("completions", model="m", continuous_usage=False)
        self.prerender = PrerenderQueue(lambda _: prompts, dialect, config, skipped=SkippedRows())
        self.prerender.begin(LoadPlan(segments=((0, StageConfig(num_prompts=1)),), begin=0.0))

    def send(self, number: int, *, at: float = 0.0) -> RequestState:
        request = self.prerender.take(NumberedRequest(number, Due(0, at)), limited=False)
        self.in_flight.add(request, at)
        self.cancellation.consider(request)
        return request


def test_a_request_times_out_after_the_request_timeout() -> None:
    load = Load(timeout=2.0)
    first = load.send(1, at=0.0)
    load.send(2, at=1.0)
    load.clock.at = 2.5
    assert load.cancellation.expire(load.in_flight)
    assert (first.status, first.error) == (RequestStatus.TIMEOUT, "no complete response within 2 s")
    assert (load.transport.withdrawn, load.ended, load.in_flight.count) == ([1], [first], 1)
    assert not load.cancellation.expire(load.in_flight)


def test_random_cancellation_waits_for_a_number_of_tokens() -> None:
    load = Load(cancel_fraction=1.0)
    request = load.send(1)
    assert not load.cancellation.expire(load.in_flight)
    for number in range(8):
        request.chunks.add(0.1 * (number + 1), 1)
    assert load.cancellation.expire(load.in_flight)
    assert (request.status, request.error) == (RequestStatus.CANCELLED, "cancelled by the client (cancel_fraction)")


def test_requests_in_flight_and_queued_ones_are_cancelled_with_a_reason() -> None:
    load = Load()
    load.send(1)
    load.send(2)
    load.in_flight.queued.append(NumberedRequest(3, Due(0, 0.5)))
    assert load.cancellation.cancel_in_flight(load.in_flight, "stopped") == 2
    load.cancellation.cancel_queued(load.in_flight, load.prerender, 4.0, reason="not sent")
    assert [(each.id, each.status, each.error) for each in load.ended] == [
        (1, RequestStatus.CANCELLED, "stopped"),
        (2, RequestStatus.CANCELLED, "stopped"),
        (3, RequestStatus.CANCELLED, "not sent"),
    ]
    assert load.transport.withdrawn == [1, 2]
