"""A real load over HTTP on the simulator in each engine's dialect: client and server count the same."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.harness import RAN, Servetop
from tests.simulator import server_process

pytestmark = pytest.mark.integration
ENGINES = {"tgi": "tgi", "trtllm": "tensorrt-llm", "sglang": "sglang"}
"""Engines by the dialect of `servetop serve`."""
ENDPOINTS = [
    ("tgi", "completions"), ("tgi", "chat"), ("tgi", "generate"),
    ("trtllm", "completions"), ("trtllm", "chat"),
    ("sglang", "completions"), ("sglang", "chat"), ("sglang", "generate"),
]  # fmt: skip
COUNTERS = {
    "tgi": ("/metrics", "tgi_request_input_length_sum", "tgi_request_generated_tokens_sum", "tgi_request_success"),
    "trtllm": (
        "/prometheus/metrics",
        "trtllm_prompt_tokens_total",
        "trtllm_generation_tokens_total",
        "trtllm_request_success_total",
    ),
    "sglang": ("/metrics", "sglang:prompt_tokens_total", "sglang:generation_tokens_total", "sglang:num_requests_total"),
}
"""A page, and what counts prompt tokens, answers' tokens and answers there."""
LOAD = ("--request-rate", "20", "--num-prompts", "30", "--input-len", "40", "--output-len", "24")


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a simulator that speaks the dialect of the test's first parameter."""
    process, url = server_process.start("--dialect", request.param, "--time-scale", "0.5")
    yield url
    assert server_process.stop(process, signal.SIGTERM) == 0


def counted(url: str, dialect: str) -> list[float]:
    path, *names = COUNTERS[dialect]
    page = httpx.get(url + path).text
    rows = [re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE) for name in names]
    return [sum(map(float, values)) for values in rows]


@pytest.mark.parametrize(("wire", "endpoint"), ENDPOINTS, indirect=["wire"], ids=[" ".join(each) for each in ENDPOINTS])
def test_requests_and_tokens_are_those_of_the_servers_own_counters(
    wire: str, endpoint: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    dialect = request.node.callspec.params["wire"]
    recording = tmp_path / "run.servetop"
    output = ("--headless", "--json", "--record", str(recording))
    run = Servetop(tmp_path)("--url", wire, *output, "--endpoint", endpoint, *LOAD)
    assert run.code in RAN, run.err
    summary = run.summary
    assert summary["engine"]["name"] == ENGINES[dialect]
    assert (summary["completed"], summary["failed"]) == (30, 0)
    totals = [summary["total_input_tokens"], summary["total_output_tokens"], 30]
    assert counted(wire, dialect) == totals
    assert [summary["server"]["prompt_tokens"], summary["server"]["generation_tokens"]] == totals[:2]
    last = RecordingReader.open(recording).engine_samples()[-1]  # scraped after the load: what a peak needs
    assert last.running is not None
    assert last.kv_usage is not None


@pytest.mark.parametrize(
    ("wire", "endpoint"), [("mii", each) for each in ("completions", "chat", "generate")], indirect=["wire"]
)
def test_an_engine_without_metrics_and_counts_is_loaded_all_the_same(wire: str, endpoint: str, tmp_path: Path) -> None:
    run = Servetop(tmp_path)("--url", wire, "--headless", "--json", "--endpoint", endpoint, *LOAD)
    assert run.code in RAN, run.err
    summary = run.summary
    assert summary["engine"]["name"] == "deepspeed-mii"
    assert (summary["completed"], summary["failed"]) == (30, 0)
    assert 30 <= summary["total_output_tokens"] <= 30 * 24
    assert summary["server"].pop("prefix_cache_ideal_hit_rate") == 0.0  # known from the prompts
    assert set(summary["server"].values()) == {None}
