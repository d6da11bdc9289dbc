"""The load generator, a prediction and a virtual run send the same requests at the same times to the same server."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from servetop.core.config import StageConfig, WorkloadConfig
from tests.workload.client.scripted_sends import (
    Reply,
    sends_of_load_generator,
    sends_of_prediction,
    sends_of_virtual_run,
)

replies = st.lists(
    st.builds(Reply, st.integers(1, 40).map(lambda count: count / 32), st.booleans()), min_size=1, max_size=9
)
ends: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(dict, num_prompts=st.integers(1, 12)), st.builds(dict, duration=st.sampled_from([0.5, 1.25, 3.0]))
)
closed: st.SearchStrategy[dict[str, Any]] = st.builds(dict, max_concurrency=st.integers(1, 5))
opened: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    request_rate=st.sampled_from([2.0, 9.0, 30.0]),
    max_concurrency=st.one_of(st.none(), st.integers(1, 4)),
)
stages = st.builds(lambda load, end: StageConfig(**load, **end), st.one_of(closed, opened), ends)
workloads = st.builds(
    WorkloadConfig,
    input_len=st.just(9),
    output_len=st.just(4),
    arrivals=st.sampled_from(["", "constant", "burst:period=0.5"]),
    think_time=st.sampled_from(["", "0.3", "exponential:mean=0.4"]),
    num_turns=st.sampled_from(["", "3"]),
)
REFUSED = [Reply(0.01, ok=False)]


@given(stages, workloads, replies)
@example(StageConfig(max_concurrency=3, duration=3.0), WorkloadConfig(), REFUSED)
@example(StageConfig(num_prompts=4), WorkloadConfig(num_turns="3", think_time="0.5"), [Reply(0.25)])
@settings(max_examples=60, deadline=None)
def test_the_three_clients_send_at_the_same_times(
    stage: StageConfig, workload: WorkloadConfig, replies: list[Reply]
) -> None:
    if workload.arrivals and stage.max_concurrency is not None and stage.request_rate == float("inf"):
        workload = dataclasses.replace(workload, arrivals="")
    sends = sends_of_load_generator(stage, workload, replies)
    assert sends_of_prediction(stage, workload, replies) == pytest.approx(sends, abs=1e-9)
    assert sends_of_virtual_run(stage, workload, replies) == pytest.approx(sends, abs=1e-9)


def test_refused_requests_are_sent_again_after_a_doubling_pause() -> None:
    stage = StageConfig(max_concurrency=1, duration=2.0)
    sends = sends_of_load_generator(stage, WorkloadConfig(), REFUSED)
    assert sends == pytest.approx([0.0, 0.02, 0.05, 0.1, 0.19, 0.36, 0.69, 1.34], abs=1e-4)
