"""The decisions of a client: limit, queue, slots, pauses after failures, drains."""

from __future__ import annotations

import math
from typing import Any

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.workload.build import arrivals_of
from servetop.workload.client.load_client import LoadClient
from servetop.workload.stages.plan import LoadPlan


def client_of(stage: StageConfig, **workload: Any) -> LoadClient[str]:
    """A client whose only stage has just begun."""
    config = WorkloadConfig(**workload)
    client: LoadClient[str] = LoadClient(config)
    plan = LoadPlan(segments=((0, stage),), begin=0.0)
    client.begin(plan, arrivals=arrivals_of(config), now=0.0).due(0.0)
    client.follow_pauses()
    return client


def due_of(client: LoadClient[str], now: float, *, in_flight: int = 0, limit: int | None = 2) -> float | None:
    """When the next user slot's request is due."""
    due = client.take_slot(now, in_flight=in_flight, limit=limit)
    return None if due is None else due.at


def test_a_client_without_a_plan_sends_nothing() -> None:
    client: LoadClient[str] = LoadClient(WorkloadConfig())
    assert due_of(client, 1.0) is None
    assert client.wake_at(1.0) == math.inf
    assert not client.closed
    assert not client.drained(1.0, unfinished=0)


@pytest.mark.parametrize(("in_flight", "limit", "room"), [(900, None, True), (1, 2, True), (2, 2, False)])
def test_the_limit_leaves_room_until_it_is_reached(in_flight: int, limit: int | None, room: bool) -> None:
    client = client_of(StageConfig(request_rate=1.0, duration=9.0))
    assert client.has_room(in_flight=in_flight, limit=limit) is room


def test_a_paused_load_sends_nothing() -> None:
    client = client_of(StageConfig(max_concurrency=2, duration=9.0))
    assert client.schedule is not None
    assert client.schedule.stage is not None
    client.schedule.stage.pause(1.0)
    assert due_of(client, 1.5) is None
    assert not client.has_room(in_flight=0, limit=2)


def test_a_closed_loop_fills_its_slots_and_sends_the_next_request_when_one_ends() -> None:
    client = client_of(StageConfig(max_concurrency=2, duration=9.0))
    assert [due_of(client, 0.0, in_flight=count) for count in range(3)] == [0.0, 0.0, None]
    client.ended(1.25, failed=False)
    client.freed(1.25)
    assert due_of(client, 1.5, in_flight=1) == 1.25
    assert client.wake_at(1.5) == 9.0


def test_after_failures_a_closed_loop_waits_ever_longer_until_a_request_succeeds() -> None:
    client = client_of(StageConfig(max_concurrency=1, duration=9.0))
    assert due_of(client, 0.0, limit=1) == 0.0
    client.ended(1.0, failed=True)
    client.freed(1.0)
    assert (due_of(client, 1.005, limit=1), client.wake_at(1.005)) == (None, 1.01)
    assert due_of(client, 1.01, limit=1) == 1.01
    client.ended(2.0, failed=True)
    client.freed(2.0)
    assert due_of(client, 2.02, limit=1) == 2.02
    client.ended(3.0, failed=False)
    client.freed(3.0)
    assert due_of(client, 3.0, limit=1) == 3.0


def test_a_user_of_a_closed_loop_thinks_between_requests() -> None:
    client = client_of(StageConfig(max_concurrency=1, duration=9.0), think_time="2")
    assert due_of(client, 0.0, limit=1) == 0.0
    client.freed(1.0)
    assert (due_of(client, 2.5, limit=1), client.wake_at(2.5)) == (None, 3.0)
    assert due_of(client, 3.0, limit=1) == 3.0


def test_a_conversation_keeps_its_slot_while_its_user_thinks() -> None:
    client = client_of(StageConfig(max_concurrency=1, duration=9.0), num_turns="2", think_time="2")
    assert due_of(client, 0.0, limit=1) == 0.0
    client.turns.add("second", after=1.0, stage=0, number=1)
    assert (due_of(client, 2.0, limit=1), client.wake_at(2.0)) == (None, 3.0)


def test_a_drain_ends_when_nothing_is_queued_in_flight_or_thinking() -> None:
    client = client_of(StageConfig(max_concurrency=1, num_prompts=1), num_turns="2", think_time="1")
    schedule = client.schedule
    assert schedule is not None
    assert due_of(client, 0.0, limit=1) == 0.0
    assert not client.drained(0.5, unfinished=0)
    schedule.due(1.0)
    assert not client.drained(1.0, unfinished=1)
    client.turns.add("second", after=1.0, stage=0, number=1)
    assert not client.drained(1.0, unfinished=0)
    assert [turn.prompt for turn in client.turns.due(2.0, schedule)] == ["second"]
    assert client.drained(2.0, unfinished=0)
    assert schedule.finished
