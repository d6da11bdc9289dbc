"""Virtual runs with several replicas, a GPU that can be read, and a prefix cache that is warm at the start."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.simulator.virtual_run.runs import merged, plan_of

STAGE = StageConfig(request_rate=6.0, duration=8.0)
PREFIXES = WorkloadConfig(input_len=64, output_len=16, prefix_len=256, num_prefixes=8)


def _hit_rate(run: VirtualRun) -> float:
    last = run.ticks[-1].engine
    assert last is not None
    return (last.prefix_cache_hits_total or 0.0) / (last.prefix_cache_queries_total or 1.0)


def test_replicas_share_the_requests_equally_and_their_samples_add_up() -> None:
    run = run_virtually(plan_of(STAGE, plan={"replicas": 3}))
    counts = Counter(record.replica for record in run.records)
    assert set(counts) == {0, 1, 2}
    assert max(counts.values()) - min(counts.values()) <= 1
    last = run.ticks[-1].engine
    assert last is not None
    parts = [each for each in run.replica_samples if each.scrape_start == last.scrape_start]
    assert sum(each.requests_finished_total or 0 for each in parts) == last.requests_finished_total
    assert last.kv_blocks_total == 3 * (run.replica_samples[-1].kv_blocks_total or 0)


def test_a_random_router_spreads_the_requests_less_evenly() -> None:
    run = run_virtually(plan_of(STAGE, plan={"replicas": 3, "router": "random"}))
    counts = Counter(record.replica for record in run.records)
    assert set(counts) == {0, 1, 2}
    assert max(counts.values()) - min(counts.values()) > 1


def test_a_missing_replica_leaves_its_requests_to_the_others() -> None:
    run = run_virtually(plan_of(STAGE, plan={"replicas": 3, "missing": (1,)}))
    assert {record.replica for record in run.records} == {0, 2}
    assert {sample.replica for sample in run.replica_samples} == {0, 2}
    assert run.header.engine is not None
    assert len(run.header.engine.replica_urls) == 3


def test_utilisation_grows_with_the_load_and_lowers_the_clock() -> None:
    low, high = (
        run_virtually(plan_of(StageConfig(request_rate=rate, duration=8.0), plan={"gpus": GpuTelemetry(droop=0.1)}))
        for rate in (0.5, 8.0)
    )
    uses = [
        sum(gpu.utilisation or 0.0 for tick in run.ticks for gpu in tick.gpus) / len(run.ticks) for run in (low, high)
    ]
    assert 0.1 < uses[0] < uses[1] - 0.1
    clocks = [
        np.mean([gpu.sm_clock for tick in run.ticks for gpu in tick.gpus if gpu.utilisation]) for run in (low, high)
    ]
    assert 1.41e9 > clocks[0] > clocks[1] > 0.9 * 1.41e9
    assert all((gpu.utilisation == 0) == (gpu.sm_clock == 0.21e9) for tick in low.ticks for gpu in tick.gpus)


def test_a_throttled_gpu_computes_prompts_more_slowly_from_that_time_on() -> None:
    workload = WorkloadConfig(input_len=2000, output_len=8)
    load = StageConfig(request_rate=0.5, duration=20.0)
    nominal, throttled = (
        run_virtually(
            plan_of(load, workload=workload, plan={"gpus": GpuTelemetry(throttle_from=10.0, throttled_to=share)})
        )
        for share in (1.0, 0.5)
    )
    before, after = (
        [merged(run.ticks[part], "ttft").mean for run in (nominal, throttled)] for part in (slice(40), slice(44, None))
    )
    assert before[1] == before[0]
    assert after[1] == pytest.approx(2 * after[0], rel=0.15)
    busy = [gpu for tick in throttled.ticks[40:] for gpu in tick.gpus if gpu.utilisation]
    assert {gpu.throttled for gpu in busy} == {"power cap"}
    assert max(gpu.sm_clock or 0 for gpu in busy) < 0.55 * 1.41e9


@pytest.mark.parametrize(("whole", "cold", "warm"), [(False, 0.65, 0.8), (True, 0.65, 0.95)])
def test_a_prefix_cache_can_be_warm_at_the_start(whole: bool, cold: float, warm: float) -> None:
    stage = StageConfig(request_rate=6.0, num_prompts=50)
    rates = [
        _hit_rate(
            run_virtually(
                plan_of(
                    stage,
                    workload=PREFIXES,
                    plan={"engine_profile": "vllm-current", "whole_prompts": whole, "cached_requests": count},
                )
            )
        )
        for count in (0, 50)
    ]
    assert rates == [pytest.approx(cold, abs=0.03), pytest.approx(warm, abs=0.03)]


def test_the_queue_of_each_replica_is_known() -> None:
    run = run_virtually(plan_of(STAGE, plan={"replicas": 2}, max_num_seqs=1))
    assert len(run.replica_admissions) == 2
    assert run.replica_admissions[0] == run.admissions
    assert all(max(state.waiting for state in states) > 3 for states in run.replica_admissions)


def test_a_replica_can_have_settings_of_its_own() -> None:
    weaker = {1: {"max_num_seqs": 2, "kv_blocks": 300}}
    run = run_virtually(plan_of(STAGE, plan={"replicas": 2, "replica_settings": weaker}, kv_blocks=900))
    parts = {each.replica: each for each in run.replica_samples}
    assert [parts[number].kv_blocks_total for number in (0, 1)] == [900, 300]
    assert parts[1].max_num_seqs == 2
    assert run.header.engine is not None
    assert run.header.engine.kv_blocks_total == 1200
    assert max(state.running for state in run.replica_admissions[1]) == 2
