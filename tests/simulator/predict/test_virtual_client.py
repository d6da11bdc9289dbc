"""The client in virtual time: what it sends at which time, and what waits."""

from __future__ import annotations

from typing import Any

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.predict.client_requests import RequestStreams
from servetop.simulator.predict.virtual_client import VirtualClient
from servetop.simulator.scheduling.build import sim_spec
from servetop.workload.build import arrivals_of
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.stage_draws import DrawSeeds

TINY = sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1")


def client_of(*stages: StageConfig, **workload: Any) -> VirtualClient:
    config = WorkloadConfig(**workload)
    draws = DrawSeeds(config, seed=1, sweep=False).plan(enumerate(stages))
    plan = LoadPlan(segments=tuple(enumerate(stages)), draws=draws, begin=0.5)
    return VirtualClient(plan, config, arrivals=arrivals_of(config), requests=RequestStreams(config, TINY).of)


def sent_at(client: VirtualClient, now: float) -> list[tuple[int, float, float, bool]]:
    """The stage, the due time and the time of each request, and whether it waited for the limit."""
    return [(each.due.stage, each.due.at, each.at, each.limited) for each in client.advance(now)]


def test_a_request_above_the_limit_is_sent_when_another_one_ends() -> None:
    client = client_of(StageConfig(request_rate=4.0, num_prompts=3, max_concurrency=1), arrivals="constant")
    assert client.wake_at == 0.5
    (first,) = client.advance(0.5)
    assert (sent_at(client, 0.75), client.queued, client.in_flight) == ([], 1, 1)
    client.ended(first.request, 0.875)
    assert sent_at(client, 0.875) == [(0, 0.75, 0.875, True)]
    assert (client.queued, client.wake_at) == (0, 1.0)


def test_a_turn_belongs_to_the_stage_in_which_it_is_due() -> None:
    stages = (StageConfig(max_concurrency=1, duration=1.0), StageConfig(max_concurrency=1, duration=9.0))
    client = client_of(*stages, num_turns="2", think_time="1", input_len=10)
    (first,) = client.advance(0.5)
    client.ended(first.request, 1.0, stage=0)
    assert (sent_at(client, 1.0), client.wake_at) == ([], 1.5)
    assert (sent_at(client, 1.5), client.wake_at) == ([], 2.0)
    assert sent_at(client, 2.0) == [(1, 2.0, 2.0, False)]


def test_cancelled_queues_are_not_sent() -> None:
    client = client_of(StageConfig(request_rate=4.0, num_prompts=2, max_concurrency=1), arrivals="constant")
    (first,) = client.advance(0.5)
    assert sent_at(client, 0.75) == []
    client.cancel_queued()
    client.ended(first.request, 1.0, ok=False)
    assert sent_at(client, 1.0) == []
    assert client.schedule.finished
