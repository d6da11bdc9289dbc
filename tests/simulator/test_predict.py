"""Predictions: their JSON, the sweep files that they read, the clients of each load, replicas, prefix cache."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.analysis.percentiles import Distribution
from servetop.cli.configuration.prediction import predict_specs
from servetop.core.arrays import FloatArray
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.run.sweep.presets import preset_names
from servetop.simulator.predict.cell_result import summary_ms
from servetop.simulator.predict.client_requests import block_hashes
from servetop.simulator.predict.predict import PredictSpec, predict
from servetop.simulator.predict.usage_integrals import UsageIntegrals
from servetop.simulator.predict.virtual_client import InProcessClient, OpenLoop, VirtualSender
from servetop.simulator.predict.virtual_time import Client, VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.scheduling.sim_request import SimRequest
from servetop.workload.build import prompts_for

MANY = settings(max_examples=200, deadline=None)
TINY = sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1")


def spec_of(*, label: str = "", model: str = "opt-125m", stage: StageConfig | None = None, **keys: Any) -> PredictSpec:
    """One cell: what is no field of PredictSpec is one of StageConfig or of WorkloadConfig."""
    own = {each.name for each in dataclasses.fields(PredictSpec)}
    of_stage = {each.name for each in dataclasses.fields(StageConfig)}
    stage_keys = {"num_prompts": 40, **{key: value for key, value in keys.items() if key in of_stage}}
    workload = {key: value for key, value in keys.items() if key not in own | of_stage}
    return PredictSpec(
        label=label,
        model=model,
        stages=(stage or StageConfig(**stage_keys),),
        workload=WorkloadConfig(**workload),
        **{key: value for key, value in keys.items() if key in own},
    )


def cell_of(**keys: Any) -> dict[str, Any]:
    cell: dict[str, Any] = predict(spec_of(**keys))["cells"][0]
    return cell


def test_a_prediction_has_the_promised_keys() -> None:
    result = predict(spec_of(max_num_seqs=8, request_rate=20.0))
    assert set(result) == {"cells", "elapsed_s", "simulated_s"}
    (cell,) = result["cells"]
    assert {
        *("engine", "model", "gpu", "max_num_seqs", "request_rate", "output_throughput", "total_token_throughput"),
        *("preemptions", "recomputed_tokens", "duration", "completed", "kv_blocks_total", "max_kv_usage"),
        *("mean_running", "ttft_ms", "itl_ms", "e2el_ms", "max_concurrency"),
    } <= set(cell)
    assert set(cell["ttft_ms"]) == set(cell["itl_ms"]) == set(cell["e2el_ms"]) == {"p50", "p90", "p99", "mean"}
    assert cell["completed"] == 40
    assert cell["output_throughput"] == pytest.approx(40 * 128 / cell["duration"])
    assert json.loads(json.dumps(result)) == result


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, second, third = (json.dumps(cell_of(request_rate=5.0, lengths="sharegpt", seed=seed)) for seed in (1, 1, 2))
    assert first == second != third


@pytest.mark.parametrize("load", [{"request_rate": 10.0}, {"max_concurrency": 4, "think_time": "0.05"}])
def test_the_time_scale_multiplies_every_duration_the_clients_too(load: dict[str, Any]) -> None:
    one, other = (cell_of(settings={"time_scale": scale}, **load) for scale in (1, 4))
    assert other["duration"] == pytest.approx(4 * one["duration"], rel=1e-4)
    assert other["ttft_ms"]["p99"] == pytest.approx(4 * one["ttft_ms"]["p99"], rel=1e-3)


@pytest.mark.parametrize("load", [{}, {"max_concurrency": 2}, {"max_concurrency": 2, "request_rate": 5.0}])
def test_requests_beyond_the_context_are_refused_and_counted(load: dict[str, Any]) -> None:
    cell = cell_of(num_prompts=3, input_len=2000, output_len=49, **load)
    assert (cell["completed"], cell["refused"], cell["output_throughput"]) == (0, 3, 0.0)


def test_a_cell_that_cannot_start_has_an_error_and_the_others_are_predicted() -> None:
    specs = [spec_of(), spec_of(model="llama-2-70b")]
    fine, refused = predict(specs)["cells"]
    assert fine["completed"] == 40
    assert "needs 138 GB" in refused["error"]
    with pytest.raises(UsageError, match="needs 138 GB"):
        predict(specs[1])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (spec_of(request_rate=0.0), "a request rate of 0 sends nothing"),
        (spec_of(num_prompts=0), "a number of prompts of 0"),
        (spec_of(num_prompts=None, request_rate=3.0), "a prediction needs an end"),
        (spec_of(arrivals="sometimes", request_rate=1.0), "unknown 'sometimes'"),
        (spec_of(router="best"), "unknown router 'best'"),
        (spec_of(replicas=0), "replicas must be at least 1"),
        (spec_of(lengths="long"), "unknown 'long'"),
    ],
)
def test_an_invalid_prediction_is_rejected_in_one_line(spec: PredictSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        predict(spec)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_describes_cells_that_start(name: str) -> None:
    specs = predict_specs(name)
    assert specs
    for spec in specs:
        keys = {key: value for key, value in spec.settings.items() if key != "padded_input_tokens"}
        build_scheduler(sim_spec(spec.model, gpu=spec.gpu, engine=spec.engine_profile, settings=keys))


def stored(folder: Path, text: str) -> str:
    file = folder / "grid.toml"
    file.write_text(text)
    return str(file)


VARIANTS = """
max_num_seqs = [64, 128]
request_rate = [1, "inf"]
num_prompts = 7
[engine]
model = "opt-1.3b"
[workload]
input_len = 10
arrivals = "constant"
[sim]
gpu = "h100"
settings = { c1 = 1e-4, c0 = 0.0 }
[[sim.variants]]
label = "a"
[[sim.variants]]
gpu = "l4"
lengths = "normal"
max_num_seqs = 3
"""


def test_each_variant_is_the_file_with_some_keys_replaced_and_settings_win(tmp_path: Path) -> None:
    first, second = predict_specs(stored(tmp_path, VARIANTS), settings={"c1": "2e-4", "seed": "5"})
    assert (first.label, first.gpu, first.model) == ("a", "h100", "opt-1.3b")
    assert (second.label, second.gpu, second.workload.input_len) == ("grid", "l4", 10)
    assert [(stage.max_num_seqs, stage.request_rate) for stage in first.stages] == [
        *((64, 1.0), (64, math.inf), (128, 1.0), (128, math.inf))
    ]
    assert [stage.max_num_seqs for stage in second.stages] == [3, 3]
    assert (first.workload.lengths, second.workload.lengths, second.workload.arrivals) == ("", "normal", "constant")
    assert first.settings["c1"] == "2e-4"
    assert first.seed == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[sim]\ngpus = "l4"', r"unknown key 'gpus' in \[sim\]: did you mean 'gpu'\?"),
        ('[sim]\nlengths = "sharegpt"', r"unknown key 'lengths' in \[sim\]: state the load once"),
        ('[[sim.variants]]\nlenghts = "normal"', "variant 1 of .sim.: unknown key 'lenghts': did you mean 'lengths'"),
        ('[[sim.variants]]\nlengths = "norml"', "unknown 'norml': did you mean normal"),
    ],
)
def test_a_key_of_the_simulator_that_is_unknown_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        predict_specs(stored(tmp_path, f"request_rate = 1\nnum_prompts = 3\n{text}"))


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
    cell = cell_of(**load)
    assert {key: cell[key] for key in expected} == expected


@pytest.mark.parametrize("load", [{"request_rate": 50.0}, {}])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_concurrency_limit_bounds_the_requests_inside_the_engine(load: dict[str, Any], replicas: int) -> None:
    limited, free = (
        cell_of(max_concurrency=limit, replicas=replicas, model="opt-1.3b", num_prompts=200, **load)
        for limit in (4, 200)
    )
    assert limited["completed"] == free["completed"] == 200
    assert 3.5 < limited["mean_running"] <= 4.0 + 1e-6
    assert free["mean_running"] > 20
    assert limited["e2el_ms"]["p99"] < free["e2el_ms"]["p99"]


def test_think_time_delays_the_requests_of_a_user() -> None:
    eager = cell_of(max_concurrency=4, num_prompts=100)
    thoughtful = cell_of(max_concurrency=4, num_prompts=100, think_time="1")
    assert thoughtful["duration"] == pytest.approx(eager["duration"] + 24, rel=0.05)


def test_a_turn_of_a_conversation_is_sent_after_the_pause_and_holds_all_before() -> None:
    cell = cell_of(num_prompts=1, num_turns="3", think_time="2", input_len=10, output_len=20)
    assert cell["duration"] > 4.0
    prompts = 10 + (10 + 20 + 10) + (40 + 20 + 10)
    assert cell["total_token_throughput"] * cell["duration"] == pytest.approx(3 * 20 + prompts)


def test_a_prefix_cache_finds_shared_prefixes_and_earlier_turns() -> None:
    base = {"engine_profile": "vllm-current", "model": "llama-2-7b", "num_prompts": 30}
    alone, shared = (cell_of(input_len=400 - prefix, prefix_len=prefix, **base) for prefix in (0, 384))
    assert shared["duration"] < 0.9 * alone["duration"]
    assert block_hashes(((1, 40), (2, 9)), 200, block_size=16) == block_hashes(((1, 40), (2, 8)), 200, block_size=16)
    assert len(block_hashes(((1, 40), (2, 9)), 200, block_size=16)) == 3
    assert block_hashes(((1, 40), (3, 9)), 200, block_size=16)[:2] == block_hashes(((1, 33),), 40, block_size=16)


def test_cancelled_requests_and_stopped_completions_are_shorter() -> None:
    whole, cancelled, stopped = (
        cell_of(num_prompts=200, output_len=400, **keys)
        for keys in ({}, {"cancel_fraction": 0.5}, {"ignore_eos": False})
    )
    tokens = [cell["output_throughput"] * cell["duration"] / 200 for cell in (whole, cancelled, stopped)]
    assert tokens == pytest.approx([400, 300, tokens[2]], rel=0.1)
    assert tokens[2] < 350


def test_lengths_are_clipped_to_the_context_where_a_run_clips_them() -> None:
    cell = cell_of(num_prompts=5, input_len=3000, output_len=100, clip_lengths=True)
    assert (cell["completed"], cell["refused"]) == (5, 0)


GRID = """
max_num_seqs = [16, 64]
request_rate = [4, 8]
num_prompts = 60
[workload]
lengths = "{lengths}"
[sim]
gpu = "a100-40"
"""
HONOURED, PREEMPTED = [618, 639, 745, 793], 5
"""Output tokens/s of the cells, and preemptions of the last one, that means of 1000 and 300 tokens make (seed 0)."""


def predicted(folder: Path, lengths: str) -> tuple[FloatArray, FloatArray]:
    """Output tokens/s by seed and cell, and preemptions of the last cell by seed."""
    file = stored(folder, GRID.format(lengths=lengths))
    cells = [predict(predict_specs(file, settings={"seed": str(seed)}))["cells"] for seed in range(20)]
    rates = np.array([[cell["output_throughput"] for cell in run] for run in cells])
    return rates, np.array([float(run[-1]["preemptions"]) for run in cells])


def test_predicted_cells_honour_the_lengths_of_the_workload(tmp_path: Path) -> None:
    rates, preemptions = predicted(tmp_path, "fixed:input=1000,output=300")
    assert (abs(rates.mean(axis=0) - HONOURED) < 2 * rates.std(axis=0)).all()
    assert preemptions.min() <= PREEMPTED <= preemptions.max()


def test_a_cell_serves_the_requests_that_a_run_sends(tmp_path: Path) -> None:
    lengths = "lognormal:input_mean=1000,output_mean=300"
    (spec,) = predict_specs(stored(tmp_path, GRID.format(lengths=lengths)))
    prompts = prompts_for(spec.workload, (spec.seed, 0)).prompts()
    for cell in predict([spec])["cells"]:
        sent = [prompt.input_tokens + prompt.output_tokens for prompt in itertools.islice(prompts, 60)]
        served = [tokens for tokens in sent if tokens <= 4096]
        assert (cell["completed"], cell["refused"]) == (len(served), 60 - len(served))
        assert cell["total_token_throughput"] * cell["duration"] == pytest.approx(sum(served))


def test_warm_ups_and_repeats_take_their_requests_as_in_a_run(tmp_path: Path) -> None:
    grid = GRID.format(lengths="lognormal:input_mean=100,output_mean=30")
    whole, warmed = (
        predict(predict_specs(stored(tmp_path, text)))["cells"]
        for text in (grid, grid.replace("num_prompts = 60", "num_prompts = 60\nrepeats = 2\nnum_warmups = 60"))
    )
    tokens = [[round(cell["output_throughput"] * cell["duration"]) for cell in cells] for cells in (whole, warmed)]
    assert len(warmed) == 2 * len(whole)
    assert tokens[1][:3] == tokens[0][1:]


def test_the_tail_of_log_normal_lengths_lowers_the_throughput(tmp_path: Path) -> None:
    rates, _ = predicted(tmp_path, "lognormal:input_mean=1000,output_mean=300")
    narrow, _ = predicted(tmp_path, "lognormal:input_mean=1000,input_sigma=0.05,output_mean=300,output_sigma=0.05")
    assert (abs(narrow.mean(axis=0) / HONOURED - 1) < 0.05).all()
    assert (rates.mean(axis=0) < 0.9 * narrow.mean(axis=0)).all()


def land_all(client: Client, *, late: float = 0.0) -> list[tuple[float, int]]:
    landed = []
    while (due := client.due()) < math.inf:
        at, requests = client.land(due + late)
        landed.append((at, len(requests)))
    return landed


def client_of(arrivals: str, *, rate: float, count: int) -> Client:
    workload = WorkloadConfig(arrivals=arrivals)
    return VirtualSender(workload, TINY, seed=2).client(StageConfig(request_rate=rate, num_prompts=count))


def test_in_process_bursts_wait_for_the_boundary_and_the_next_second_starts_there() -> None:
    client = client_of("in-process-burst", rate=4.0, count=10)
    assert isinstance(client, InProcessClient)
    assert land_all(client, late=0.25) == [(0.25, 4), (1.5, 4)]


def test_requests_of_an_open_loop_keep_their_due_times() -> None:
    assert land_all(OpenLoop([SimRequest(1, 1)] * 2, [0.5, 1.0]), late=9.0) == [(0.5, 1), (1.0, 1)]
    assert land_all(client_of("constant", rate=4.0, count=3), late=9.0) == [(0.0, 1), (0.25, 1), (0.5, 1)]
    assert land_all(client_of("spaced", rate=96.0, count=3)) == [(0.0, 1), (0.010, 1), (0.020, 1)]
    times = [at for at, _ in land_all(client_of("poisson", rate=8.0, count=4000))]
    assert statistics.stdev(np.diff(times)) == pytest.approx(1 / 8, rel=0.1)


def test_copies_of_a_model_double_the_throughput_of_a_saturated_one() -> None:
    one, two, balanced = (
        cell_of(model="opt-1.3b", num_prompts=600, replicas=replicas, router=router)
        for replicas, router in ((1, "round-robin"), (2, "round-robin"), (2, "least-loaded"))
    )
    assert two["output_throughput"] == pytest.approx(2 * one["output_throughput"], rel=0.1)
    assert two["completed"] == balanced["completed"] == 600
    assert two["kv_blocks_total"] == 2 * one["kv_blocks_total"]


def test_replicas_are_no_slower_than_a_single_engine() -> None:
    alone, routed = (
        cell_of(model="opt-1.3b", num_prompts=50, request_rate=3.0, arrivals="constant", replicas=count)
        for count in (1, 2)
    )
    assert routed["completed"] == alone["completed"] == 50
    assert routed["e2el_ms"]["p99"] <= alone["e2el_ms"]["p99"]


def shared_prefix(*, cache: bool) -> VirtualEngine:
    keys = {"prefix_cache": cache, "kv_blocks": 300, "max_num_seqs": 4}
    engine = VirtualEngine(build_scheduler(sim_spec("opt-1.3b", gpu="a100-40", engine="vllm-current", settings=keys)))
    requests = [SimRequest(200, 20, 0, (*range(10), 100 + index, 200 + index)) for index in range(30)]
    engine.run(OpenLoop(requests, [index / 50 for index in range(30)]))
    return engine


def test_a_shared_prefix_is_computed_once_and_saves_blocks() -> None:
    cached, plain = shared_prefix(cache=True), shared_prefix(cache=False)
    assert cached.scheduler.prefix is not None
    assert cached.scheduler.prefix.hit_tokens == 29 * 160
    assert cached.scheduler.prefix.queried_tokens == 30 * 200
    assert cached.scheduler.blocks.peak < plain.scheduler.blocks.peak
    assert cached.usage.ended_at < plain.usage.ended_at
    assert cached.scheduler.blocks.used == 0


prefixed = st.builds(
    lambda blocks, rest, output, family: SimRequest(
        16 * blocks + rest, output, 0, tuple(family * 100 + index for index in range(blocks))
    ),
    *(st.integers(0, 5), st.integers(1, 15), st.integers(1, 20), st.integers(0, 2)),
)


@given(
    st.lists(prefixed, min_size=1, max_size=25),
    st.integers(8, 40),
    st.sampled_from(("chunked", "recompute", "reserve")),
)
@MANY
def test_a_prefix_cache_keeps_all_blocks_and_requests(requests: list[SimRequest], blocks: int, policy: str) -> None:
    keys = {"kv_blocks": blocks, "max_num_seqs": 6, "policy": policy, "prefix_cache": True}
    engine = VirtualEngine(build_scheduler(sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1", settings=keys)))
    engine.run(OpenLoop(requests, [index / 400 for index in range(len(requests))]))
    assert engine.scheduler.blocks.used == 0
    assert len(engine.usage.finished) + engine.usage.refused == len(requests)


runs = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.01), st.integers(1, 20), st.integers(1, 9))


@given(st.lists(runs, max_size=12))
@MANY
def test_the_gaps_of_a_run_are_those_of_its_steps(table: list[tuple[float, float, int, int]]) -> None:
    usage = UsageIntegrals()
    usage.gaps = table
    gaps = [
        first + growth * step for first, growth, count, weight in table for step in range(count) for _ in range(weight)
    ]
    found = usage.gap_distribution()
    assert found.count == len(gaps)
    if gaps:
        assert found.percentile(50) == pytest.approx(np.percentile(gaps, 50))
        assert summary_ms(found)["mean"] == pytest.approx(1e3 * np.mean(gaps))


def test_no_samples_give_zeros() -> None:
    assert summary_ms(Distribution.of(np.empty(0))) == {"p50": 0.0, "p90": 0.0, "p99": 0.0, "mean": 0.0}
