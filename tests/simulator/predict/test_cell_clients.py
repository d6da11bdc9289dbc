"""Clients of a cell: arrivals, limits, think time, conversations, cancellation."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.model.sim_request import SimRequest
from servetop.simulator.predict.cell_clients import InProcessClient, OpenLoop, VirtualSender
from servetop.simulator.predict.virtual_time import Client
from servetop.simulator.scheduling.build import sim_spec
from tests.simulator.predict.cells import result_of

TINY = sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1")


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ({"num_prompts": 5, "input_len": 7}, {"completed": 5}),
        ({"duration": 2.0, "request_rate": 10.0, "arrivals": "constant", "num_prompts": None}, {"completed": 20}),
        ({"duration": 2.0, "request_rate": 4.0, "arrivals": "burst:period=0.5", "num_prompts": None}, {"completed": 8}),
        ({"n": 3, "num_prompts": 5}, {"completed": 15}),
        ({"num_turns": "3", "num_prompts": 5, "input_len": 20}, {"completed": 15}),
        (
            {
                "dataset": "azure-conv",
                "arrivals": "trace",
                "trace_rate": 5.3,
                "request_rate": 5.3,
                "clip_lengths": True,
            },
            {"completed": 40},
        ),
    ],
)
def test_a_cell_sends_the_requests_of_its_stage(load: dict[str, Any], expected: dict[str, int]) -> None:
    result = result_of(**load)
    assert {key: getattr(result, key) for key in expected} == expected


@pytest.mark.parametrize("load", [{"request_rate": 50.0}, {}, {"request_rate": 50.0, "arrivals": "in-process-burst"}])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_concurrency_limit_bounds_the_requests_inside_the_engine(load: dict[str, Any], replicas: int) -> None:
    limited, free = (
        result_of(max_concurrency=limit, replicas=replicas, model="opt-1.3b", num_prompts=200, **load)
        for limit in (4, 200)
    )
    assert limited.completed == free.completed == 200
    assert 3.5 < limited.mean_running <= 4.0 + 1e-6
    assert free.mean_running > 20
    assert limited.e2el_ms.p99 < free.e2el_ms.p99


def test_a_closed_loop_retries_refused_requests_ever_later_until_its_end() -> None:
    """Two at a time: at 0, 0.02, 0.1, 0.42, 1.42, 2.42 and 3.42 s."""
    result = result_of(max_concurrency=2, duration=3.5, num_prompts=None, input_len=2000, output_len=49)
    assert (result.completed, result.refused) == (0, 14)


@pytest.mark.parametrize("scale", [1, 3, 0.1, 7])
def test_a_closed_loop_ends_with_its_duration_at_any_time_scale(scale: float) -> None:
    result = result_of(max_concurrency=3, duration=2.1, num_prompts=None, output_len=3, settings={"time_scale": scale})
    assert result.duration == pytest.approx(2.1 * scale, rel=0.02)


def test_think_time_delays_the_requests_of_a_user() -> None:
    eager = result_of(max_concurrency=4, num_prompts=100)
    thoughtful = result_of(max_concurrency=4, num_prompts=100, think_time="1")
    assert thoughtful.duration == pytest.approx(eager.duration + 24, rel=0.05)


def test_a_turn_of_a_conversation_follows_the_pause_and_includes_previous_turns() -> None:
    result = result_of(num_prompts=1, num_turns="3", think_time="2", input_len=10, output_len=20)
    assert result.duration > 4.0
    prompts = 10 + (10 + 20 + 10) + (40 + 20 + 10)
    assert result.total_token_throughput * result.duration == pytest.approx(3 * 20 + prompts)


def test_cancelled_requests_shorten_the_run_and_are_excluded() -> None:
    whole, cancelled = (result_of(num_prompts=200, output_len=400, cancel_fraction=share) for share in (0.0, 0.5))
    assert (whole.completed, whole.cancelled) == (200, 0)
    assert cancelled.completed + cancelled.cancelled == 200
    assert cancelled.cancelled == pytest.approx(100, rel=0.2)
    assert cancelled.output_throughput * cancelled.duration == pytest.approx(400 * cancelled.completed)
    assert cancelled.duration <= whole.duration


def test_the_model_stops_completions_without_ignore_eos() -> None:
    result = result_of(num_prompts=200, output_len=400, ignore_eos=False)
    assert 200 < result.output_throughput * result.duration / 200 < 350


def test_lengths_are_clipped_to_the_context_as_in_a_run() -> None:
    result = result_of(num_prompts=5, input_len=3000, output_len=100, clip_lengths=True)
    assert (result.completed, result.refused) == (5, 0)


def send_all(client: Client, *, late: float = 0.0) -> list[tuple[float, int]]:
    landed = []
    while (due := client.due()) < math.inf:
        at, requests = client.send(due + late)
        landed.append((at, len(requests)))
    return landed


def client_of(arrivals: str, *, rate: float, count: int) -> Client:
    workload = WorkloadConfig(arrivals=arrivals)
    return VirtualSender(workload, TINY, seed=2).client(StageConfig(request_rate=rate, num_prompts=count))


def test_in_process_bursts_wait_for_the_boundary_and_the_next_second_starts_there() -> None:
    client = client_of("in-process-burst", rate=4.0, count=10)
    assert isinstance(client, InProcessClient)
    assert send_all(client, late=0.25) == [(0.25, 4), (1.5, 4)]


def test_requests_of_an_open_loop_keep_their_due_times() -> None:
    assert send_all(OpenLoop([SimRequest(1, 1)] * 2, [0.5, 1.0]), late=9.0) == [(0.5, 1), (1.0, 1)]
    assert send_all(client_of("constant", rate=4.0, count=3), late=9.0) == [(0.0, 1), (0.25, 1), (0.5, 1)]
    assert send_all(client_of("spaced", rate=96.0, count=3)) == [(0.0, 1), (0.010, 1), (0.020, 1)]
    times = [at for at, _ in send_all(client_of("poisson", rate=8.0, count=4000))]
    assert statistics.stdev(np.diff(times)) == pytest.approx(1 / 8, rel=0.1)
