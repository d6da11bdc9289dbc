"""Predictions: the JSON that others read, the studies' clients and lengths, replicas, prefix cache."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.core.errors import UsageError
from servetop.simulator.predict.arrivals import Bursts, OpenLoop, at_once, constant, poisson, spaced
from servetop.simulator.predict.lengths import SimLengths
from servetop.simulator.predict.percentiles import expand_gaps, summary_ms
from servetop.simulator.predict.predict import PredictSpec, predict
from servetop.simulator.predict.presets import specs_of_preset
from servetop.simulator.predict.virtual_time import VirtualEngine
from servetop.simulator.scheduling.build import build_scheduler, sim_spec
from servetop.simulator.scheduling.sim_request import SimRequest

PRESETS = sorted((Path(__file__).parents[2] / "run" / "servetop" / "run" / "presets").glob("*.toml"))
MANY = settings(max_examples=200, deadline=None)
SMALL = PredictSpec(model="opt-125m", num_prompts=40, request_rate=(20.0,), max_num_seqs=(8,))


def preset(text: str) -> list[PredictSpec]:
    return specs_of_preset(tomllib.loads(text), label="mine")


def test_a_prediction_has_the_promised_keys() -> None:
    result = predict(SMALL)
    assert set(result) == {"cells", "elapsed_s", "simulated_s"}
    (cell,) = result["cells"]
    assert {
        *("engine", "model", "gpu", "max_num_seqs", "request_rate", "output_throughput", "total_token_throughput"),
        *("preemptions", "recomputed_tokens", "duration", "completed", "kv_blocks_total", "max_kv_usage"),
        *("mean_running", "ttft_ms", "itl_ms", "e2el_ms"),
    } <= set(cell)
    assert set(cell["ttft_ms"]) == set(cell["itl_ms"]) == set(cell["e2el_ms"]) == {"p50", "p90", "p99", "mean"}
    assert cell["completed"] == 40
    assert cell["output_throughput"] == pytest.approx(40 * 128 / cell["duration"])
    assert json.loads(json.dumps(result)) == result


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    lengths = SimLengths(kind="sharegpt")
    runs = [
        PredictSpec(model="opt-125m", num_prompts=30, request_rate=(5,), lengths=lengths, seed=s) for s in (1, 1, 2)
    ]
    first, second, third = (json.dumps(predict(run)["cells"]) for run in runs)
    assert first == second != third


def test_the_time_scale_multiplies_every_duration_the_clients_too() -> None:
    plain, slow = (
        predict(PredictSpec(model="opt-125m", num_prompts=50, request_rate=(10,), settings={"time_scale": scale}))
        for scale in (1, 4)
    )
    (one,), (other,) = plain["cells"], slow["cells"]
    assert other["duration"] == pytest.approx(4 * one["duration"], rel=1e-6)
    assert other["ttft_ms"]["p99"] == pytest.approx(4 * one["ttft_ms"]["p99"], rel=1e-4)


def test_requests_beyond_the_model_s_context_are_refused_and_counted() -> None:
    (cell,) = predict(PredictSpec(model="opt-125m", num_prompts=3, lengths=SimLengths(input_len=2000, output_len=49)))[
        "cells"
    ]
    assert (cell["completed"], cell["refused"], cell["output_throughput"]) == (0, 3, 0.0)


def test_a_cell_that_cannot_start_says_so_and_the_others_go_on() -> None:
    specs = [SMALL, PredictSpec(model="llama-2-70b", num_prompts=5)]
    fine, refused = predict(specs)["cells"]
    assert fine["completed"] == 40
    assert "needs 138 GB" in refused["error"]
    with pytest.raises(UsageError, match="needs 138 GB"):
        predict(specs[1])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (PredictSpec(request_rate=(0.0,)), "request_rate must be above 0"),
        (PredictSpec(num_prompts=0), "num_prompts must be at least 1"),
        (PredictSpec(arrivals="sometimes"), "no arrivals 'sometimes'"),
        (PredictSpec(router="best"), "no router 'best'"),
        (PredictSpec(replicas=0), "replicas must be at least 1"),
        (PredictSpec(lengths=SimLengths(kind="long")), "no length distribution 'long'"),
        (PredictSpec(lengths=SimLengths(output_len=0)), "must be at least 1"),
    ],
)
def test_nonsense_is_refused_in_one_line(spec: PredictSpec, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        predict(spec)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_preset_describes_cells_that_start(path: Path) -> None:
    specs = specs_of_preset(tomllib.loads(path.read_text(encoding="utf-8")), label=path.stem)
    assert specs
    for spec in specs:
        spec.lengths.requests(3, seed=0)
        keys = {key: value for key, value in spec.settings.items() if key != "padded_input_tokens"}
        build_scheduler(sim_spec(spec.model, gpu=spec.gpu, engine=spec.engine_profile, settings=keys))


def test_the_presets_of_all_studies_are_there() -> None:
    names = {path.stem for path in PRESETS}
    assert {f"whitepaper-{number}" for number in (2, 3, 4, 5)} <= names
    assert {"whitepaper-1-vllm", "whitepaper-1-tensorrt-llm", "anyscale", "bsc", "course", "fastgen"} <= names


def test_a_preset_gives_one_spec_per_variant_and_settings_win() -> None:
    text = """
        max_num_seqs = [64, 128]
        request_rate = [1, "inf"]
        num_prompts = 7
        [engine]
        model = "opt-1.3b"
        [workload]
        input_len = 10
        [sim]
        gpu = "h100"
        settings = { c1 = 1e-4, c0 = 0.0 }
        [[sim.variants]]
        label = "a"
        [[sim.variants]]
        gpu = "l4"
    """
    first, second = specs_of_preset(tomllib.loads(text), label="mine", settings={"c1": "2e-4", "seed": "5"})
    assert (first.label, first.gpu, first.model) == ("a", "h100", "opt-1.3b")
    assert (second.label, second.gpu, second.lengths.input_len) == ("mine", "l4", 10)
    assert first.max_num_seqs == (64, 128)
    assert first.request_rate == (1.0, math.inf)
    assert first.settings["c1"] == "2e-4"
    assert first.seed == 5
    with pytest.raises(UsageError, match=r"unknown key 'arivals' in \[sim\]: did you mean 'arrivals'\?"):
        preset('[sim]\narivals = "burst"')


def land_all(arrivals: Bursts | OpenLoop, *, late: float = 0.0) -> list[tuple[float, int]]:
    landed = []
    while (due := arrivals.due()) < math.inf:
        at, requests = arrivals.land(due + late)
        landed.append((at, len(requests)))
    return landed


def test_bursts_wait_for_the_boundary_and_the_next_second_starts_there() -> None:
    requests = [SimRequest(1, 1)] * 10
    assert land_all(Bursts(requests, per_burst=4), late=0.25) == [(0.25, 4), (1.5, 4)]


def test_open_loop_requests_keep_their_due_times() -> None:
    requests = [SimRequest(1, 1)] * 3
    assert land_all(OpenLoop(requests, constant(3, rate=4.0)), late=9.0) == [(0.0, 1), (0.25, 1), (0.5, 1)]
    assert list(spaced(3, rate=96.0)) == [0.0, 0.010, 0.020]
    assert list(at_once(2)) == [0.0, 0.0]


def test_poisson_gaps_have_the_rate_and_the_seed() -> None:
    times = list(poisson(4000, rate=8.0, seed=2))
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert statistics.mean(gaps) == pytest.approx(1 / 8, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(1 / 8, rel=0.1)
    assert times == list(poisson(4000, rate=8.0, seed=2)) != list(poisson(4000, rate=8.0, seed=3))


@pytest.mark.parametrize(("cap", "mean"), [(32, 15.33), (128, 53.51), (512, 118.45), (1536, 127.99)])
def test_capped_exponential_lengths_have_the_study_s_means(cap: int, mean: float) -> None:
    lengths = SimLengths(kind="capped-exponential", input_len=512, output_mean=128.0, output_cap=cap)
    outputs = [request.output_tokens for request in lengths.requests(20_000, seed=1)]
    assert statistics.mean(outputs) == pytest.approx(mean, rel=0.04)
    assert max(outputs) <= cap


def test_sharegpt_lengths_are_the_dataset_s_or_scaled_to_a_mean() -> None:
    plain = SimLengths(kind="sharegpt").requests(5000, seed=0)
    assert statistics.mean(each.prompt_tokens for each in plain) == pytest.approx(179, rel=0.1)
    assert statistics.mean(each.output_tokens for each in plain) == pytest.approx(328, rel=0.05)
    scaled = SimLengths(kind="sharegpt", output_mean=230.0, output_spread=1.5).requests(5000, seed=0)
    assert statistics.mean(each.output_tokens for each in scaled) == pytest.approx(230, rel=0.02)


def test_normal_lengths_stay_within_their_limits() -> None:
    lengths = SimLengths(kind="normal", input_len=50, output_mean=20.0, output_spread=30.0, output_cap=40)
    requests = lengths.requests(500, seed=0)
    assert {1, 40} <= {each.output_tokens for each in requests}
    assert max(each.prompt_tokens for each in requests) <= 50


def test_copies_of_a_model_double_the_throughput_of_a_saturated_one() -> None:
    one, two, balanced = (
        predict(PredictSpec(model="opt-1.3b", num_prompts=600, replicas=replicas, router=router))["cells"][0]
        for replicas, router in ((1, "round-robin"), (2, "round-robin"), (2, "least-loaded"))
    )
    assert two["output_throughput"] == pytest.approx(2 * one["output_throughput"], rel=0.1)
    assert two["completed"] == balanced["completed"] == 600
    assert two["kv_blocks_total"] == 2 * one["kv_blocks_total"]


def test_replicas_that_a_router_feeds_one_by_one_match_a_single_engine_of_one() -> None:
    alone, routed = (
        predict(PredictSpec(model="opt-1.3b", num_prompts=50, request_rate=(3,), arrivals="constant", replicas=n))
        for n in (1, 2)
    )
    assert routed["cells"][0]["completed"] == alone["cells"][0]["completed"] == 50
    assert routed["cells"][0]["e2el_ms"]["p99"] <= alone["cells"][0]["e2el_ms"]["p99"]


def shared_prefix(*, cache: bool) -> VirtualEngine:
    keys = {"prefix_cache": cache, "kv_blocks": 300, "max_num_seqs": 4}
    engine = VirtualEngine(build_scheduler(sim_spec("opt-1.3b", gpu="a100-40", engine="vllm-current", settings=keys)))
    requests = [SimRequest(200, 20, 0, (*range(10), 100 + index, 200 + index)) for index in range(30)]
    engine.run(OpenLoop(requests, constant(30, rate=50.0)))
    return engine


def test_a_shared_prefix_is_computed_once_and_saves_blocks() -> None:
    cached, plain = shared_prefix(cache=True), shared_prefix(cache=False)
    assert cached.scheduler.prefix is not None
    assert cached.scheduler.prefix.hit_tokens == 29 * 160
    assert cached.scheduler.prefix.queried_tokens == 30 * 200
    assert cached.scheduler.blocks.peak < plain.scheduler.blocks.peak
    assert cached.ledger.ended_at < plain.ledger.ended_at
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
def test_a_prefix_cache_loses_no_block_and_no_request(requests: list[SimRequest], blocks: int, policy: str) -> None:
    keys = {"kv_blocks": blocks, "max_num_seqs": 6, "policy": policy, "prefix_cache": True}
    engine = VirtualEngine(build_scheduler(sim_spec("opt-125m", gpu="a100-40", engine="vllm-0.2.1", settings=keys)))
    engine.run(OpenLoop(requests, constant(len(requests), rate=400.0)))
    assert engine.scheduler.blocks.used == 0
    assert len(engine.ledger.finished) + engine.ledger.refused == len(requests)


runs = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.01), st.integers(1, 20), st.integers(1, 9))


@given(st.lists(runs, min_size=1, max_size=12))
@MANY
def test_weighted_percentiles_equal_those_of_the_repeated_samples(table: list[tuple[float, float, int, int]]) -> None:
    values, counts = expand_gaps(table)
    everything = np.repeat(values, counts)
    summary = summary_ms(values, counts)
    for share in (50, 90, 99):
        assert summary[f"p{share}"] == pytest.approx(1e3 * np.percentile(everything, share))
    assert summary["mean"] == pytest.approx(1e3 * everything.mean())


def test_no_samples_give_zeros() -> None:
    assert summary_ms(np.empty(0)) == {"p50": 0.0, "p90": 0.0, "p99": 0.0, "mean": 0.0}
    values, counts = expand_gaps([])
    assert len(values) == len(counts) == 0
