"""A virtual run whose engine plans as that of a prediction has exactly the latencies of the prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import RequestStatus
from servetop.simulator.predict.predict import PredictSpec, predict_cell
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.simulator.virtual_run.runs import plan_of

VARIED: dict[str, Any] = {"input_len": 200, "output_len": 100, "lengths": "lognormal"}
OPEN = StageConfig(request_rate=12.0, num_prompts=100)
CLOSED = StageConfig(max_concurrency=20, num_prompts=100)


@pytest.mark.parametrize(
    ("stage", "workload", "settings"),
    [
        (OPEN, VARIED, {"kv_blocks": 500}),
        (CLOSED, VARIED, {"kv_blocks": 500}),
        (CLOSED, VARIED, {"max_model_len": 300}),
        (StageConfig(num_prompts=100), VARIED, {"kv_blocks": 500}),
        (OPEN, {**VARIED, "arrivals": "burst:period=0.5"}, {}),
        (CLOSED, {"num_turns": "3", "input_len": 50, "output_len": 20}, {}),
        (CLOSED, {"num_turns": "3", "think_time": "exponential:mean=0.5", "output_len": 20}, {"prefix_cache": True}),
    ],
)
def test_the_latencies_are_those_of_the_prediction(
    stage: StageConfig, workload: dict[str, Any], settings: dict[str, Any]
) -> None:
    config = WorkloadConfig(**workload)
    run = run_virtually(plan_of(stage, workload=config, plan={"at_boundaries": True, "token_times": True}, **settings))
    cell = predict_cell(PredictSpec(workload=config, seed=3, sweep=False, settings=settings), stage)
    ended = [record for record in run.records if record.status is RequestStatus.OK]
    ttft = 1e3 * np.array([(record.first_token_at or 0.0) - (record.sent or 0.0) for record in ended])
    e2el = 1e3 * np.array([(record.done_at or 0.0) - (record.sent or 0.0) for record in ended])
    assert (len(ended), len(run.records) - len(ended)) == (cell.completed, cell.refused)
    assert (ttft.mean(), e2el.mean()) == pytest.approx((cell.ttft_ms.mean, cell.e2el_ms.mean))
    assert np.percentile(ttft, 99) == pytest.approx(cell.ttft_ms.p99)
    assert all(record.chunk_tokens.sum() == record.chunk_times.size == record.output_tokens for record in ended)
    gaps = 1e3 * np.concatenate([np.diff(record.chunk_times) for record in ended])
    assert np.percentile(gaps, 99) == pytest.approx(cell.itl_ms.p99, rel=0.01)
    engine = run.ticks[-1].engine
    assert engine is not None
    assert engine.preemptions_total == cell.preemptions


def test_the_least_loaded_replica_receives_a_request() -> None:
    plan = plan_of(
        StageConfig(request_rate=20.0, num_prompts=60),
        workload=WorkloadConfig(**VARIED),
        plan={"replicas": 2, "router": "least-loaded", "at_boundaries": True},
    )
    replicas = [record.replica for record in sorted(run_virtually(plan).records, key=lambda each: each.id)]
    assert replicas[:2] == [0, 1]
    assert {replicas.count(0), replicas.count(1)} != {30}
