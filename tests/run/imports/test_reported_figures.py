"""What a tool printed is read by the keys of a summary, whatever its own names and units."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from servetop.run.imports.record_import import record_import
from servetop.run.imports.reported_figures import aiperf_figures, bench_figures, guidellm_figures
from servetop.run.imports.result_file import read_results

RESULTS = Path(__file__).parents[2] / "corpus" / "results"


def test_benchmarks_of_vllm_and_sglang() -> None:
    document = {"mean_ttft_ms": 12.5, "mean_e2e_latency_ms": 90.0, "request_throughput": 3.0, "duration": 20.0}
    expected = {"mean_ttft_ms": 12.5, "mean_e2el_ms": 90.0, "request_throughput": 3.0, "duration": 20.0}
    assert bench_figures({**document, "mean_tpot_ms": None, "mean_itl_ms": float("nan"), "num_prompts": 60}) == expected


def test_summaries_of_aiperf_in_both_layouts_and_other_units() -> None:
    metrics = {"time_to_first_token": {"unit": "sec", "avg": 0.02}, "benchmark_duration": {"unit": "sec", "avg": 9.5}}
    assert aiperf_figures(metrics) == {"mean_ttft_ms": 20.0, "duration": 9.5}
    older = {"records": {"ttft": {"unit": "ms", "avg": 20.0}, "inter_token_latency": {"unit": "?", "avg": 3.0}}}
    assert aiperf_figures(older) == {"mean_ttft_ms": 20.0}


def test_metrics_of_guidellm_are_those_of_successful_requests() -> None:
    metrics = {
        "request_latency": {"successful": {"mean": 0.5}, "errored": {"mean": 9.0}},
        "inter_token_latency_ms": {"successful": None},
        "requests_per_second": {"successful": {"mean": True}},
    }
    assert guidellm_figures({**metrics, "requests_per_second": None}) == {"mean_e2el_ms": 500.0}


@pytest.mark.parametrize("name", ["vllm-rate.json", "sglang-rate.jsonl", "guidellm-poisson.json"])
def test_a_recording_keeps_what_the_tool_wrote(name: str, tmp_path: Path) -> None:
    (result,) = read_results(RESULTS / name)
    target = tmp_path / "run.servetop"
    record_import(result, RESULTS / name, target)
    with contextlib.closing(RecordingReader.open(target)) as reader:
        imported = reader.header.manifest["imported"]
    assert imported["reported"] == result.reported
    assert len(result.reported) >= 3
    assert imported.get("times_known", True) is result.times_known
