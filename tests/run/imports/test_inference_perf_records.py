"""Requests of inference-perf have the published percentiles; tokens are the server's, and a difference is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop import api
from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.inference_perf_records import read_inference_perf_records
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results

FOLDER = Path(__file__).parents[2] / "corpus" / "results" / "inference_perf"
REQUESTS, REJECTED = FOLDER / "per_request_lifecycle_metrics.json", FOLDER / "rejected.json"
PERCENTILES = {"p1": 1, "p5": 5, "p25": 25, "median": 50, "p75": 75, "p95": 95, "p99": 99}


def rows(path: Path = REQUESTS) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def read(found: Any) -> ImportedResult:
    (result,) = read_inference_perf_records(found, REQUESTS)
    return result


def test_published_percentiles_follow_from_the_rows() -> None:
    published = json.loads((FOLDER / "summary_lifecycle_metrics.json").read_text(encoding="utf-8"))["successes"][
        "latency"
    ]
    (result,) = read_results(REQUESTS)
    values: dict[str, list[Any]] = {
        "time_to_first_token": [each.ttft for each in result.requests],
        "request_latency": [each.e2el for each in result.requests],
    }
    for name, found in values.items():
        assert np.mean(found) == pytest.approx(published[name]["mean"], rel=1e-9)
        for key, q in PERCENTILES.items():
            assert np.percentile(found, q) == pytest.approx(published[name][key], rel=1e-9), (name, q)


def test_with_the_same_count_of_tokens_gaps_are_the_published_ones() -> None:
    published = json.loads((FOLDER / "summary_lifecycle_metrics.json").read_text(encoding="utf-8"))["successes"][
        "latency"
    ]
    found = rows()
    for row in found:
        row["info"]["response_metrics"]["chunk_times"] = row["info"]["response_metrics"]["output_token_times"]
    gaps = [gap for each in read(found).requests for gap in np.diff(each.chunk_times)]
    for key, q in PERCENTILES.items():
        assert np.percentile(gaps, q) == pytest.approx(published["inter_token_latency"][key], rel=1e-9, abs=1e-12)


def test_tokens_are_the_servers_and_another_count_is_said() -> None:
    (result,) = read_results(REQUESTS)
    counts = [row["info"]["response_metrics"]["server_usage"]["completion_tokens"] for row in rows()]
    assert sorted(each.output_tokens for each in result.requests) == sorted(counts)
    assert all(each.chunk_sizes_known for each in result.requests)
    assert (result.model, result.endpoint) == ("llama-2-7b", "completions")
    assert "inference-perf's tokenizer counts other output tokens" in result.remarks[1]
    same = rows()
    for row in same:
        response = row["info"]["response_metrics"]
        response["output_tokens"] = response["server_usage"]["completion_tokens"]
    assert len(read(same).remarks) == 1


def test_rejected_requests_keep_their_reason_and_the_recording_is_sound(tmp_path: Path) -> None:
    (result,) = read_results(REJECTED)
    failed = [each for each in result.requests if each.status is RequestStatus.ERROR]
    assert len(failed) == 18
    assert {each.http_status for each in failed} == {429}
    assert failed[0].error is not None
    assert failed[0].error.startswith("HTTP Error 429: {")
    target = tmp_path / "run.servetop"
    record_import(result, REJECTED, target)
    assert verify(target).verdict is VerifyVerdict.SOUND


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"start_time": -1}, "start_time of request 2 is -1"),
        ({"end_time": None}, "end_time of request 2 is NoneType"),
        ({"end_time": 1.0}, "chunk_times of request 2 are not in order"),
        ({"info": None}, "info of request 2 is absent: repeat the benchmark with per_request_fields.info"),
        ({"info": {"response_metrics": {"chunk_times": 3}}}, "chunk_times of request 2 is not a list"),
    ],
)
def test_values_that_make_no_sense_are_refused(change: dict[str, Any], reason: str) -> None:
    found = rows()[:3]
    found[1] |= change
    with pytest.raises(UsageError) as refused:
        read(found)
    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            {"load_summary": {}, "successes": {}},
            "it has statistics but no requests: give per_request_lifecycle_metrics",
        ),
        ([], "it is not a list of requests"),
        ([3], "it is not a list of requests"),
    ],
)
def test_what_has_no_requests_is_refused(document: Any, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(document)
    assert str(refused.value).startswith(reason)


def test_an_open_loop_is_advised_a_rate_and_a_closed_loop_a_concurrency(tmp_path: Path) -> None:
    (opened,) = read_results(REQUESTS)
    assert opened.load.scheduled
    advised = []
    for number, scheduled in enumerate((True, False)):
        target = tmp_path / f"{number}.servetop"
        record_import(replace(opened, load=replace(opened.load, scheduled=scheduled)), None, target)
        with api.open_recording(target) as recording:
            story = recording.summary().story
        assert story is not None
        advised += [each.text for each in story.lines if each.advice]
    assert advised == ["try a higher rate", "try a higher concurrency"]
