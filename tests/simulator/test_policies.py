"""The differences between the policies, in small cases."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.core.errors import UsageError
from servetop.simulator.model.sim_request import SimRequest
from servetop.simulator.predict.cell_clients import OpenLoop
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec


def run(policy: str, requests: list[SimRequest], times: list[float] | None = None, **keys: object) -> VirtualEngine:
    settings = {"policy": policy, "max_num_seqs": 8, "kv_blocks": 1000, "c1": 0.0} | keys
    engine = VirtualEngine(
        build_scheduler(sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings=settings))
    )
    engine.run(OpenLoop(requests, times or [0.0] * len(requests)))
    return engine


def longest_gap(engine: VirtualEngine) -> float:
    return max(first + growth * (count - 1) for first, growth, count, _ in engine.usage.gaps)


def test_prefill_first_stalls_running_streams_and_chunked_prefill_hardly_does() -> None:
    requests, times = [SimRequest(16, 200), SimRequest(3000, 2)], [0.0, 0.5]
    stalls = {
        policy: longest_gap(run(policy, requests, times, max_num_batched_tokens=budget))
        for policy, budget in (("recompute", 4096), ("inflight", 4096), ("chunked", 256))
    }
    assert stalls["chunked"] < 0.25 * stalls["inflight"]
    assert stalls["inflight"] < stalls["recompute"]


def test_chunks_of_a_long_prompt_fit_the_token_budget() -> None:
    engine = run("chunked", [SimRequest(1000, 2)], max_num_batched_tokens=100)
    (seq,) = engine.usage.finished
    assert seq.first_token_at is not None
    one_chunk = run("chunked", [SimRequest(100, 2)], max_num_batched_tokens=100).usage.finished[0].first_token_at
    assert seq.first_token_at == pytest.approx(10 * (one_chunk or 0.0), rel=0.05)


def test_reservation_runs_fewer_sequences_than_paging() -> None:
    requests = [SimRequest(16, 16, 1000)] * 8
    reserved, paged = run("reserve", requests, kv_blocks=130), run("recompute", requests, kv_blocks=130)
    assert reserved.usage.ended_at > 2 * paged.usage.ended_at
    assert reserved.scheduler.blocks.peak == 128


def test_orca_reserves_a_slot_of_the_maximum_length_for_each_request() -> None:
    engine = run("orca", [SimRequest(16, 16)] * 6, block_size=1, kv_blocks=2048, max_model_len=1024)
    assert engine.scheduler.blocks.peak == 2048
    starts = {seq.scheduled_at for seq in engine.usage.finished}
    assert len(starts) == 3


def test_swapping_moves_blocks_instead_of_recomputing_them() -> None:
    requests = [SimRequest(100, 60)] * 6
    swapped, recomputed = run("swap", requests, kv_blocks=50), run("recompute", requests, kv_blocks=50)
    assert swapped.scheduler.preemptions > 0
    assert recomputed.scheduler.recomputed_tokens > 0
    assert swapped.scheduler.recomputed_tokens == 0
    slow_bus: dict[str, Any] = {"gpu.host_bandwidth": 1e9}
    slow = run("swap", requests, kv_blocks=50, **slow_bus)
    assert slow.usage.ended_at > swapped.usage.ended_at


def test_a_dynamic_batch_starts_when_full_or_when_its_oldest_request_has_waited() -> None:
    times = [0.0, 0.01, 1.0, 1.02]
    engine = run("dynamic", [SimRequest(8, 4)] * 4, times, max_num_seqs=2, batch_timeout=0.2)
    assert [seq.scheduled_at for seq in engine.usage.sequences] == pytest.approx([0.01, 0.01, 1.02, 1.02])
    lonely = run("dynamic", [SimRequest(8, 4)], [0.5], max_num_seqs=2, batch_timeout=0.2)
    assert lonely.usage.sequences[0].scheduled_at == pytest.approx(0.7)


def test_a_static_batch_ends_with_its_longest_completion() -> None:
    engine = run("static", [SimRequest(8, 4), SimRequest(8, 40), SimRequest(8, 4)], max_num_seqs=2)
    first, second, third = engine.usage.sequences
    assert first.finished_at == second.finished_at == third.scheduled_at


def test_without_batching_requests_run_one_at_a_time() -> None:
    engine = run("no-batching", [SimRequest(8, 4)] * 3, max_num_seqs=1)
    ends = [seq.finished_at for seq in engine.usage.sequences]
    assert [seq.scheduled_at for seq in engine.usage.sequences] == [0.0, *ends[:-1]]


def test_offloaded_weights_are_read_at_pcie_bandwidth() -> None:
    spec = sim_spec("opt-13b", gpu="a100-40", engine="flexgen")
    scheduler = build_scheduler(spec)
    over_pcie = spec.model.gemm_weight_bytes / spec.gpu.host_bandwidth
    assert scheduler.cost.decode(64) >= over_pcie
    assert scheduler.blocks.total * spec.model.kv_bytes_per_token > spec.gpu.memory_bytes


def test_tensor_parallelism_shortens_a_step_and_adds_all_reduces() -> None:
    steps = {}
    for ways in (1, 2, 4):
        settings = {"tensor_parallel": ways, "c1": 0.0}
        spec = sim_spec("llama-2-13b", gpu="a100-40", engine="vllm-0.2.1", settings=settings)
        steps[ways] = build_scheduler(spec).cost.decode(16)
    assert steps[4] < steps[2] < steps[1]
    assert steps[2] > steps[1] / 2


def test_an_unknown_policy_is_rejected_with_the_closest_name() -> None:
    with pytest.raises(UsageError, match=r"no policy 'recompte': did you mean 'recompute'\?"):
        run("recompte", [SimRequest(1, 1)])
