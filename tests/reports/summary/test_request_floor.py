"""No request is faster than the arithmetic of its prompt and the bytes of its tokens; unknown facts give no bound."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pytest

from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.report_page import report_page
from servetop.reports.summary.request_floor import RequestFloor, TypicalRequest, request_floor

H200 = ("NVIDIA H200",)
REQUEST = TypicalRequest(prompt_tokens=1000.0, output_tokens=200.0)


def header(recording: str = "sample:h200", **engine: Any) -> RunHeader:
    with contextlib.closing(RecordingReader.open(resolve(recording))) as reader:
        found = reader.header
    config = dataclasses.replace(found.config, engine=dataclasses.replace(found.config.engine, **engine))
    return dataclasses.replace(found, config=config)


def floor(found: RunHeader, hit_rate: float | None = 0.0, gpus: tuple[str, ...] = H200) -> RequestFloor | None:
    return request_floor(found, gpus=gpus, request=REQUEST, hit_rate=hit_rate)


def test_the_bounds_are_arithmetic_over_the_peaks() -> None:
    found = floor(header())
    assert found is not None
    layers = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert found.ttft == pytest.approx(2 * layers * 1000 / 989e12, rel=0.001)
    assert found.tpot == pytest.approx((2 * 6.607e9 + 1100 * 32 * 2 * 4096 * 2) / 4800e9, rel=1e-6)
    assert (found.prompt_is_computed, found.gpus, found.context) == (True, 1, 1100)


def test_more_gpus_share_the_work() -> None:
    one, two = floor(header()), floor(header(extra_args=("--tensor-parallel-size", "2")))
    assert one is not None
    assert two is not None
    assert (two.ttft, two.tpot) == pytest.approx((one.ttft / 2, one.tpot / 2))


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_a_prompt_from_the_cache_costs_no_arithmetic(rate: float) -> None:
    found = floor(header(), rate)
    assert found is not None
    assert found.ttft == pytest.approx(2 * 6.607e9 / 4800e9)
    assert not found.prompt_is_computed


def test_the_simulator_knows_its_gpu_and_its_speed() -> None:
    own, fast = (header("sample", extra_args=each) for each in (("--gpu", "h100"), ("--time-scale", "0.5")))
    h100, a100 = floor(own, gpus=()), floor(fast, gpus=())
    assert h100 is not None
    assert a100 is not None
    assert (h100.gpu, a100.gpu) != (a100.gpu, h100.gpu)
    assert a100.tpot == pytest.approx(0.5 * h100.tpot * h100.gpu.bandwidth / a100.gpu.bandwidth)


@pytest.mark.parametrize(
    "engine",
    [
        {"url": "http://gpu7:8000"},
        {"name": "llama.cpp"},
        {"extra_args": ("--quantization=awq",)},
        {"extra_args": ("--kv_cache_dtype", "fp8")},
        {"extra_args": ("--dtype", "float32")},
        {"extra_args": ("-tp", "2")},
        {"extra_args": ("--tensor-parallel-size", "two")},
        {"extra_args": ("--tensor-parallel-size", "0")},
        {"extra_args": ("--speculative-config", "{}")},
    ],
)
def test_unknown_facts_give_no_bound(engine: dict[str, Any]) -> None:
    assert floor(header(**engine)) is None


def test_unknown_gpus_models_and_lengths_give_no_bound() -> None:
    known = header()
    assert known.engine is not None
    assert floor(known, gpus=()) is None
    assert floor(known, gpus=("NVIDIA H200", "NVIDIA L4")) is None
    for name in ("unknown-9b", "profile.toml"):
        assert floor(dataclasses.replace(known, engine=dataclasses.replace(known.engine, model=name))) is None
    assert floor(dataclasses.replace(known, predicted=True)) is None
    nothing = TypicalRequest(prompt_tokens=np.nan, output_tokens=1.0)
    assert request_floor(known, gpus=H200, request=nothing, hit_rate=None) is None
    assert floor(header("sample", extra_args=("--gpu", "mine.toml")), gpus=()) is None
    assert floor(header("sample", extra_args=("--gpu", "unknown")), gpus=()) is None


@pytest.mark.parametrize("name", ["sample", "sample:h200"])
def test_no_measured_request_is_below_it(name: str) -> None:
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        page = report_page(reader, name=name)
    assert page.floor is not None
    for metric, bound in (("ttft", page.floor.ttft), ("tpot", page.floor.tpot)):
        fastest = page.summary.requests.latency(metric, "p50")
        assert fastest is not None
        assert fastest > 1e3 * bound
