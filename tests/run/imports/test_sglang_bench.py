"""Results of SGLang have the published statistics; when requests were sent is derived or placed, and said to be."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.recordings.format.request_codec import last_known_at
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results
from servetop.run.imports.sglang_bench import read_sglang_result

RESULTS = Path(__file__).parents[2] / "corpus" / "results"
NAMES = ("sglang-rate", "sglang-closed-loop")


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.jsonl").read_text(encoding="utf-8"))
    return found


def ms(values: list[Any], statistic: str) -> float:
    if statistic == "std":
        return float(np.std(values)) * 1e3
    q = {"median": 50.0}.get(statistic) or float(statistic[1:])
    return float(np.percentile(values, q)) * 1e3


@pytest.mark.parametrize("name", NAMES)
def test_published_statistics_follow_from_the_lists(name: str) -> None:
    (result,), published = read_results(RESULTS / f"{name}.jsonl"), document(name)
    found: dict[str, list[Any]] = {
        "ttft": [each.ttft for each in result.requests],
        "e2e_latency": [each.e2el for each in result.requests],
        "tpot": [(each.e2el - each.ttft) / (each.output_tokens - 1) for each in result.requests],  # type: ignore[operator]
        "itl": [gap for each in result.requests for gap in np.diff(each.chunk_times)],
    }
    for metric, values in found.items():
        exact = (
            1e-9 if metric in ("ttft", "itl") else 1e-3
        )  # the file has no latencies: a request ends with its last chunk
        assert np.mean(values) * 1e3 == pytest.approx(published[f"mean_{metric}_ms"], rel=exact), metric
        for statistic in ("median", "std", "p90", "p95", "p99"):
            assert ms(values, statistic) == pytest.approx(published[f"{statistic}_{metric}_ms"], rel=exact), metric
    assert sum(each.output_tokens for each in result.requests) == published["total_output_tokens"]


@pytest.mark.parametrize("name", NAMES)
def test_its_recording_is_sound_and_lasts_as_long(name: str, tmp_path: Path) -> None:
    (result,) = read_results(RESULTS / f"{name}.jsonl")
    target = tmp_path / "run.servetop"
    record_import(result, RESULTS / f"{name}.jsonl", target)
    assert verify(target).verdict is VerifyVerdict.SOUND
    duration = document(name)["duration"]
    assert max(map(last_known_at, result.requests)) == pytest.approx(duration, rel=0.15)


def test_what_was_derived_is_said() -> None:
    rate, closed = (read_sglang_result(document(name)) for name in NAMES)
    assert "arrivals at a rate are random: requests are placed evenly" in rate.remarks[0]
    assert closed.remarks[0].startswith("the file has no times of sending")
    assert (closed.load.max_concurrency, closed.load.request_rate) == (4, math.inf)
    assert rate.load.request_rate == 10
    assert closed.not_carried == ["generated_texts"]


def test_a_derived_run_that_agrees_with_the_duration_is_said_to_be_derived() -> None:
    found = document("sglang-closed-loop")
    whole = max(map(last_known_at, read_sglang_result(found).requests))
    assert "they are derived from the latencies" in read_sglang_result({**found, "duration": whole}).remarks[0]
    assert "so throughput is not the tool's" in read_sglang_result({**found, "duration": 2 * whole}).remarks[0]


def test_failures_and_the_facts_of_the_server_are_kept() -> None:
    found = document("sglang-closed-loop")
    found["errors"][3] = "Traceback\n  line\nValueError: broken"
    found["server_info"] = {"model_path": "a/b", "tokenizer_path": "t", "tp_size": 2}
    result = read_sglang_result(found)
    assert (result.requests[3].status, result.requests[3].error) == (RequestStatus.ERROR, "ValueError: broken")
    assert (result.model, result.tokenizer) == ("a/b", "t")
    assert result.not_carried[1:] == ["errors before their last line", "server_info beyond model and tokenizer"]
    assert result.remarks[1] == "the file says that 24 requests completed, its lists say 23"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"ttfts": None},
            "it has statistics but no requests (ttfts missing): repeat the benchmark with --output-details",
        ),
        (
            {key: [] for key in ("ttfts", "itls", "input_lens", "output_lens", "errors", "generated_texts")},
            "it has no req",
        ),
        ({"max_concurrency": 0}, "max_concurrency is 0"),
        ({"request_rate": -1}, "request_rate is -1"),
        ({"duration": None}, "duration is NoneType"),
        ({"input_lens": [1]}, "its lists are of different lengths"),
    ],
)
def test_values_that_make_no_sense_are_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_sglang_result({**document("sglang-rate"), **change})
    assert str(refused.value).startswith(reason)


def test_the_requests_of_a_trace_are_those_of_an_open_loop() -> None:
    found = document("sglang-rate")
    assert not read_sglang_result(found).load.scheduled
    traced = read_sglang_result({**found, "request_rate": "trace"}).load
    assert (traced.scheduled, traced.request_rate) == (True, math.inf)
