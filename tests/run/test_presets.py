"""Each preset's workload is the one that its study describes (reference: shared/reference/studies.md, simulator.md)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from servetop.cli.configuration.prediction import predict_specs
from servetop.cli.configuration.sweep_file import read_sweep
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.core.config import WorkloadConfig
from servetop.run.sweep.presets import preset_names
from servetop.workload.arrivals.arrival_spec import parse_arrivals
from servetop.workload.request_lengths import RequestLengths, request_lengths


@dataclass(frozen=True, kw_only=True)
class Study:
    """What a study says of its load."""

    source: str
    """Where it says so: study and section of studies.md, or the client's script."""
    model: str
    batches: tuple[int, ...] = ()
    rates: tuple[float, ...]
    num_prompts: int
    arrivals: str
    forced: bool = True
    """Completions are as long as the client wants (`ignore_eos`)."""
    prompt: tuple[float, float, float]
    """Smallest, mean and largest number of tokens; 0 is unspecified."""
    output: tuple[float, float, float]


BATCHES = (64, 96, 128, 160, 192, 224, 256)
SHAREGPT = (4, 184.0, 2048)
"""A.3: ShareGPT, 4 to 2048 tokens: what its pairs have on average."""
STUDIES = {
    "whitepaper-1-vllm": Study(
        source="A.1, Table 4; simulator.md 1: floor(5000/qps) bursts from the engine's own loop",
        model="llama-2-7b", batches=BATCHES, rates=(32, 64, 96, 128), num_prompts=5000, arrivals="in-process-burst",
        prompt=(128, 128, 128), output=(128, 128, 128),
    ),
    "whitepaper-1-tensorrt-llm": Study(
        source="A.1, Table 5; simulator.md 1: one request every 1000 // qps ms",
        model="llama-2-7b", batches=BATCHES, rates=(32, 64, 96, 128), num_prompts=5000, arrivals="spaced",
        prompt=(128, 128, 128), output=(128, 128, 128),
    ),
    "whitepaper-2": Study(
        source="A.2, Table 14: vLLM at 64 QPS, batch 128 to 288",
        model="llama-2-7b", batches=tuple(range(128, 289, 16)), rates=(64,), num_prompts=5000,
        arrivals="in-process-burst", prompt=(128, 128, 128), output=(128, 128, 128),
    ),
    "whitepaper-3": Study(
        source="A.3, Table 8; simulator.md 1: 1000 unseeded ShareGPT prompts, output length forced",
        model="llama-2-7b", rates=(1, 2, 4, 8, 16, 32, 64, 128), num_prompts=1000, arrivals="in-process-burst",
        prompt=SHAREGPT, output=(1, 230.3, 2048),
    ),
    "whitepaper-4": Study(
        source="A.4: until EOS, short (chat model) and long (base model), QPS 32",
        model="llama-2-7b", rates=(32,), num_prompts=1000, arrivals="in-process-burst", forced=False,
        prompt=SHAREGPT, output=(1, 128, 2048),
    ),
    "whitepaper-5": Study(
        source="A.5, Tables 11 to 13: Llama-2-13b-chat until EOS, QPS 0.5 to 8",
        model="llama-2-13b", rates=(0.5, 1, 1.5, 2, 4, 8), num_prompts=150, arrivals="in-process-burst", forced=False,
        prompt=SHAREGPT, output=(1, 370, 2048),
    ),
    "anyscale": Study(
        source="B: 1000 prompts of 512 tokens at once, output exponential of mean 128, capped at 1536",
        model="opt-13b", rates=(math.inf,), num_prompts=1000, arrivals="gamma",
        prompt=(512, 512, 512), output=(1, 128, 1536),
    ),
    "course": Study(
        source="C: prompts random, outputs 1 to 512, normal around 128, total up to 1536, 1000 prompts, QPS 1 and 4",
        model="opt-125m", rates=(1, 4), num_prompts=1000, arrivals="poisson",
        prompt=(1, 512.5, 1024), output=(1, 130, 512),
    ),
    "bsc": Study(
        source="D: 500 sentences, input 512, output 32 to 256, Poisson at infinite, 100 and 10 per second",
        model="opt-125m", rates=(math.inf, 100, 10), num_prompts=500, arrivals="poisson",
        prompt=(512, 512, 512), output=(128, 128, 128),
    ),
    "fastgen": Study(
        source="DeepSpeed-FastGen's blog: 2600 in, 60 out",
        model="llama-2-7b", rates=(1, 2, 4, 6, 8), num_prompts=512, arrivals="poisson",
        prompt=(2600, 2600, 2600), output=(60, 60, 60),
    ),
}  # fmt: skip


def drawn(workload: WorkloadConfig, count: int) -> list[RequestLengths]:
    return list(itertools.islice(request_lengths(workload, (0, 0)), count))


def test_every_preset_has_its_study() -> None:
    assert set(STUDIES) == set(preset_names())


@pytest.mark.parametrize("name", STUDIES)
def test_a_sweep_measures_the_grid_of_the_study(name: str) -> None:
    study, config = STUDIES[name], sweep_config(read_sweep(name))
    assert config.engine.model == study.model
    assert {stage.num_prompts for stage in config.stages} == {study.num_prompts}
    assert [(stage.max_num_seqs, stage.request_rate) for stage in config.stages] == list(
        itertools.product(study.batches or (None,), study.rates)
    )
    assert parse_arrivals(config.workload.arrivals).name == study.arrivals
    assert config.workload.ignore_eos is study.forced


@pytest.mark.parametrize("name", STUDIES)
def test_a_sweep_sends_the_lengths_of_the_study(name: str) -> None:
    study, workload = STUDIES[name], sweep_config(read_sweep(name)).workload
    requests = drawn(workload, study.num_prompts)
    for (least, mean, most), tokens in (
        (study.prompt, [each.prompt_tokens for each in requests]),
        (study.output, [each.output_tokens for each in requests]),
    ):
        assert min(tokens) >= least
        assert max(tokens) <= most
        assert np.mean(tokens) == pytest.approx(mean, rel=0.1 if study.num_prompts >= 500 else 0.2)
    assert {each.max_tokens == each.output_tokens for each in requests} == {study.forced}


@pytest.mark.parametrize("name", sorted(set(STUDIES) - {"whitepaper-4", "whitepaper-5", "anyscale", "bsc", "course"}))
def test_all_predictions_of_a_preset_send_the_workload_that_a_sweep_measures(name: str) -> None:
    config = sweep_config(read_sweep(name))
    for spec in predict_specs(name):
        assert spec.stages == config.stages
        if spec.label not in VARIED:
            assert spec.workload == config.workload


VARIED = ("tensorrt-llm", "vllm, 1200 in, 128 out", "fastgen, 1200 in, 128 out")
"""Variants of whitepaper-3 and fastgen with a load of their own: another client, other lengths."""


@pytest.mark.parametrize(
    ("name", "label", "expected"),
    [
        ("anyscale", "vLLM, cap 32", (15.33, 32)),
        ("anyscale", "vLLM, cap 128", (53.51, 128)),
        ("anyscale", "vLLM, cap 512", (118.45, 512)),
        ("anyscale", "vLLM, cap 1536", (127.99, 1536)),
        ("whitepaper-4", "vllm-0.2.1 long outputs, 2 GB of KV", (512, 2048)),
        ("whitepaper-4", "vllm-0.2.1 short outputs, 2 GB of KV", (128, 2048)),
        ("whitepaper-5", "table 13: tgi", (370, 2048)),
        ("bsc", "opt-125m, vllm-0.2.1, 32 out", (32, 32)),
        ("bsc", "opt-125m, vllm-0.2.1, 256 out", (256, 256)),
    ],
)
def test_a_variant_has_the_output_lengths_of_its_experiment(name: str, label: str, expected: tuple[float, int]) -> None:
    spec = next(spec for spec in predict_specs(name) if spec.label == label)
    outputs: Any = [each.output_tokens for each in drawn(spec.workload, spec.stages[0].num_prompts or 0)]
    assert np.mean(outputs) == pytest.approx(expected[0], rel=0.1)
    assert max(outputs) <= expected[1]
