"""Durations, physical bounds, and the gain of continuous over static batching."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.simulator.model.cost import CostModel, HostCost
from servetop.simulator.model.profile_files import load_gpu, load_model
from servetop.simulator.model.sim_request import SimRequest, SimSequence
from servetop.simulator.model.work import PrefillChunk, Work, on_grid
from servetop.simulator.predict.cell_clients import OpenLoop
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.workload.arrivals.arrival_spec import arrivals_for

MANY = settings(max_examples=200, deadline=None)
POLICIES = ("recompute", "swap", "reserve", "inflight", "inflight-reserve", "chunked", "splitfuse", "static", "dynamic")


def a100(**keys: object) -> CostModel:
    return CostModel(load_gpu("a100-40"), load_model("llama-2-7b"), host=HostCost(), **keys)  # type: ignore[arg-type]


def prompt(tokens: int) -> PrefillChunk:
    return PrefillChunk(SimSequence(SimRequest(tokens, 1), index=0, arrival=0.0), 0, tokens)


@pytest.mark.parametrize(
    ("tokens", "measured_ms", "tolerance"),
    [(64, 8.6, 0.06), (128, 11.0, 0.11), (136, 16.5, 0.20), (256, 16.1, 0.15), (512, 30.5, 0.05), (4096, 240.0, 0.03)],
)
def test_gemm_times_of_an_a100_80_are_reproduced(tokens: int, measured_ms: float, tolerance: float) -> None:
    cost = CostModel(load_gpu("a100-80"), load_model("llama-2-7b"), host=HostCost())
    attention_free = cost.decode(tokens)
    assert attention_free * 1e3 == pytest.approx(measured_ms, rel=tolerance)


def test_gemm_cost_is_rounded_up_to_tiles_of_128_tokens() -> None:
    cost = a100()
    assert cost.decode(129) == cost.decode(256) > cost.decode(128) > cost.decode(64) == cost.decode(1)


def test_kv_is_read_at_the_efficient_bandwidth() -> None:
    assert a100().kv_rate == pytest.approx(524_288 / (1555e9 * 0.8), rel=1e-5)
    assert a100(tensor_parallel=2).kv_rate == pytest.approx(a100().kv_rate / 2, rel=1e-5)


def test_the_chunks_of_a_prompt_cost_the_attention_of_the_whole_prompt() -> None:
    seq = SimSequence(SimRequest(1024, 1), index=0, arrival=0.0)
    cost = a100()
    halves = cost.prefill([PrefillChunk(seq, 0, 512)]) + cost.prefill([PrefillChunk(seq, 512, 512)])
    linear = 2 * cost.decode(512) + 512 * cost.kv_rate
    whole = cost.prefill([prompt(1024)]) - cost.decode(1024)
    assert halves - linear == pytest.approx(whole, rel=1e-3)


def test_the_time_scale_multiplies_every_duration() -> None:
    slow, plain = a100(time_scale=2.0), a100()
    assert slow.decode(100) == pytest.approx(2 * plain.decode(100))
    assert slow.kv_rate == pytest.approx(2 * plain.kv_rate, rel=1e-5)
    assert slow.prefill([prompt(300)]) == pytest.approx(2 * plain.prefill([prompt(300)]))


@given(st.floats(1e-6, 0.1), st.floats(0.0, 1e-4), st.integers(1, 2000), st.floats(0.0, 1e-2), st.data())
@MANY
def test_a_run_of_steps_in_closed_form_is_the_sum_of_its_steps(
    first: float, slope: float, steps: int, delay: float, data: st.DataObject
) -> None:
    work = Work(first=on_grid(first), slope=on_grid(slope), steps=steps, delay=on_grid(delay))
    count = data.draw(st.integers(1, steps))
    total = work.delay
    for step in range(1, count + 1):
        total += work.gap(step)
    assert total == work.elapsed(count)
    assert work.steps_by(work.elapsed(count)) == count
    just_after = math.nextafter(work.elapsed(count), math.inf)
    assert work.steps_by(just_after) == min(count + 1, steps)


engines = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(POLICIES),
        "max_num_seqs": st.integers(1, 64),
        "kv_blocks": st.integers(30, 2000),
        "c1": st.sampled_from((0.0, 1e-4)),
    }
)


@given(
    engines, st.integers(1, 200), st.integers(1, 120), st.sampled_from((1.0, 8.0, 64.0, math.inf)), st.integers(1, 80)
)
@MANY
def test_no_engine_exceeds_bandwidth_compute_or_the_offered_load(
    keys: dict[str, object], prompt_tokens: int, output: int, rate: float, count: int
) -> None:
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings=keys)
    engine = VirtualEngine(build_scheduler(spec))
    times = list(itertools.islice(arrivals_for(rate, burstiness=1.0, seed=(1,)).due_times(), count))
    usage = engine.run(OpenLoop([SimRequest(prompt_tokens, output)] * count, times))
    if not usage.finished:
        return
    busy = usage.busy_seconds
    model, gpu = spec.model, spec.gpu
    weights_once = model.gemm_weight_bytes / gpu.bandwidth
    assert usage.output_tokens / busy <= spec.batch_limit / weights_once
    computed = prompt_tokens + output - 1
    assert usage.output_tokens / busy <= gpu.flops / (2 * model.gemm_parameters) * output / computed
    assert usage.ended_at - times[0] >= times[len(usage.sequences) - 1] - times[0]


def run_batching(policy: str, outputs: list[int], *, batch: int) -> float:
    """Seconds to serve all requests, with prompts of one token and no cost of KV reads and host."""
    keys = {"policy": policy, "max_num_seqs": batch, "kv_blocks": 10**6, "c1": 0.0, "gpu.kv_efficiency": 1e6}
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings=keys)
    engine = VirtualEngine(build_scheduler(spec))
    usage = engine.run(OpenLoop([SimRequest(1, output) for output in outputs], [0.0] * len(outputs)))
    return usage.ended_at


def test_continuous_batching_gains_nothing_on_constant_lengths() -> None:
    outputs = [100] * 160
    assert run_batching("static", outputs, batch=16) == pytest.approx(
        run_batching("inflight-reserve", outputs, batch=16), rel=0.01
    )


def test_the_gain_of_continuous_batching_on_exponential_lengths_is_the_harmonic_number() -> None:
    source = random.Random(4)
    outputs = [max(1, round(source.expovariate(1 / 400))) for _ in range(4000)]
    batch = 8
    harmonic = sum(1 / k for k in range(1, batch + 1))
    gain = run_batching("static", outputs, batch=batch) / run_batching("inflight-reserve", outputs, batch=batch)
    assert gain == pytest.approx(harmonic, rel=0.04)


def test_the_gain_of_continuous_batching_grows_with_the_variance_of_lengths() -> None:
    gains = []
    for spread in (0, 20, 60, 95):
        source = random.Random(5)
        outputs = [100 + source.choice((-spread, spread)) for _ in range(800)]
        gains.append(run_batching("static", outputs, batch=8) / run_batching("inflight-reserve", outputs, batch=8))
    assert gains == sorted(gains)
    assert gains[-1] > 1.7 * gains[0]
