"""Responses of LLMPerf have the published percentiles; when they were sent is placed, and said to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.recordings.format.request_codec import last_known_at
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.llmperf_responses import read_llmperf_responses
from servetop.run.imports.placed_times import EVEN_CHUNKS
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results

FOLDER = Path(__file__).parents[2] / "corpus" / "results" / "llmperf"
RUNS = ("groq_70b", "together_13b")
ROW: dict[str, Any] = {
    "error_code": None, "error_msg": "", "inter_token_latency_s": 0.1, "ttft_s": 0.2, "end_to_end_latency_s": 0.5,
    "request_output_throughput_token_per_s": 8.0, "number_total_tokens": 14, "number_output_tokens": 4,
    "number_input_tokens": 10,
}  # fmt: skip


def imported(name: str) -> ImportedResult:
    (found,) = read_results(FOLDER / f"individual_{name}.json")
    return found


def read(*rows: dict[str, Any], path: Path = Path("nowhere") / "individual.json") -> ImportedResult:
    (found,) = read_llmperf_responses(list(rows), path)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_published_quantiles_follow_from_the_rows(name: str) -> None:
    result = imported(name)
    published = json.loads((FOLDER / f"summary_{name}.json").read_text(encoding="utf-8"))
    served = [each for each in result.requests if each.status is RequestStatus.OK]
    values = {"ttft_s": [each.ttft for each in served], "end_to_end_latency_s": [each.e2el for each in served]}
    for metric, found in values.items():
        for q in (25, 50, 75, 90, 95, 99):
            known = published[f"results_{metric}_quantiles_p{q}"]
            assert np.percentile(found, q) == pytest.approx(known, rel=1e-9), (metric, q)  # type: ignore[arg-type]
    assert len(served) == published["results_num_completed_requests"]
    assert len(result.requests) - len(served) == published["results_number_errors"]


@pytest.mark.parametrize("name", RUNS)
def test_the_run_lasts_as_long_as_published_but_for_the_last_pause(name: str) -> None:
    published = json.loads((FOLDER / f"summary_{name}.json").read_text(encoding="utf-8"))
    minutes = published["results_num_completed_requests"] / published["results_num_completed_requests_per_min"]
    result = imported(name)
    assert max(map(last_known_at, result.requests)) == pytest.approx(60 * minutes, rel=0.02)
    assert result.remarks[0].startswith("the file has no times of sending: requests are placed in waves of 5")
    assert (result.model, result.load.max_concurrency) == (published["model"], 5)


def test_its_recording_is_sound_and_has_a_tpot(tmp_path: Path) -> None:
    source, target = FOLDER / "individual_groq_70b.json", tmp_path / "run.servetop"
    result = imported("groq_70b")
    record_import(result, source, target)
    assert verify(target).verdict is VerifyVerdict.SOUND
    first = result.requests[0]
    assert first.tpot == pytest.approx((first.e2el - first.ttft) / (first.output_tokens - 1))  # type: ignore[operator]


def test_rates_that_contradict_their_tokens_are_said() -> None:
    assert any("contradicts number_output_tokens" in each for each in imported("together_13b").remarks)
    assert not any("contradicts" in each for each in read(ROW).remarks)


def test_without_a_summary_requests_follow_one_another() -> None:
    result = read(ROW, ROW)
    assert [each.sent for each in result.requests] == [0.0, 0.5]
    assert (result.load.max_concurrency, result.model) == (1, "")
    assert "no summary is beside it" in result.remarks[0]
    assert result.remarks[1] == EVEN_CHUNKS


def test_waves_that_take_too_long_become_a_closed_loop(tmp_path: Path) -> None:
    summary = {
        "num_concurrent_requests": 2, "results_num_completed_requests": 3, "results_num_completed_requests_per_min": 200
    }  # fmt: skip
    (tmp_path / "m_summary.json").write_text(json.dumps(summary), encoding="utf-8")
    result = read(ROW, ROW, ROW, path=tmp_path / "m_individual_responses.json")
    assert [each.sent for each in result.requests] == [0.0, 0.0, 0.5]
    assert "which takes 1.00 s instead of 900 ms" in result.remarks[0]


@pytest.mark.parametrize(
    ("change", "error", "status", "output"),
    [
        ({"error_code": 429, "error_msg": "Too\nmany", "ttft_s": 0, "end_to_end_latency_s": 0}, "Too many", 429, 0),
        ({"error_code": -1}, "failed with error_code -1, without a reason in the file", None, 4),
    ],
)
def test_failures_keep_their_reason(change: dict[str, Any], error: str, status: int | None, output: int) -> None:
    _, found = read(ROW, {**ROW, **change}).requests
    assert (found.status, found.error, found.http_status) == (RequestStatus.ERROR, error, status)
    assert found.output_tokens == output


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"results_ttft_s_mean": 1.0}, "it has statistics but no requests: give the file of individual responses"),
        ([], "it is not a list of responses"),
        ([ROW, 3], "it is not a list of responses"),
        ([{**ROW, "ttft_s": -1}], "ttft_s of request 1 is -1"),
        ([{**ROW, "ttft_s": 0.6}], "end_to_end_latency_s of request 1 is below its ttft_s"),
        ([{**ROW, "number_output_tokens": 1.5}], "number_output_tokens of request 1 is 1.5"),
        ([{**ROW, "end_to_end_latency_s": None}], "end_to_end_latency_s of request 1 is NoneType"),
    ],
)
def test_values_that_make_no_sense_are_refused(document: Any, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_llmperf_responses(document, Path("nowhere") / "individual.json")
    assert str(refused.value).startswith(reason)
