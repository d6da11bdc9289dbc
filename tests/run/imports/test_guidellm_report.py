"""Reports of guidellm have the published statistics; each benchmark is a run."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.run.imports.guidellm_report import read_guidellm_report
from servetop.run.imports.imported_result import ImportedResult
from servetop.run.imports.placed_times import EVEN_CHUNKS
from servetop.run.imports.record_import import record_import
from servetop.run.imports.result_file import read_results

RESULTS = Path(__file__).parents[2] / "corpus" / "results"
POISSON, REJECTED = (RESULTS / f"guidellm-{name}.json" for name in ("poisson", "rejected"))
OK = RequestStatus.OK


def document(path: Path = POISSON) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def read(found: dict[str, Any]) -> list[ImportedResult]:
    return read_guidellm_report(found, Path("nowhere"))


@pytest.mark.parametrize("path", [POISSON, REJECTED], ids=["poisson", "rejected"])
def test_published_statistics_follow_from_the_requests(path: Path) -> None:
    (result,) = read_results(path)
    metrics = document(path)["benchmarks"][0]["metrics"]
    served = [each for each in result.requests if each.status is OK]
    values: dict[str, list[Any]] = {
        "time_to_first_token_ms": [each.ttft * 1e3 for each in served],  # type: ignore[operator]
        "request_latency": [each.e2el for each in served],
        "inter_token_latency_ms": [gap * 1e3 for each in served for gap in np.diff(each.chunk_times)],
    }
    for name, found in values.items():
        known = metrics[name]["successful"]
        assert np.mean(found) == pytest.approx(known["mean"], rel=1e-6), name
        assert [min(found), max(found)] == pytest.approx([known["min"], known["max"]], rel=1e-5, abs=1e-3), name
    for name in ("time_to_first_token_ms", "request_latency"):
        ranked = sorted(values[name])
        for q in (1, 5, 10, 25, 50, 75, 90, 95, 99):  # a sample: rounding decides which of two at a whole rank
            rank = len(ranked) * q / 100
            near = [ranked[max(0, int(np.ceil(rank)) - 1)], ranked[min(len(ranked) - 1, int(rank))]]
            known = metrics[name]["successful"]["percentiles"][f"p{q:02d}"]
            assert any(known == pytest.approx(each, rel=1e-5) for each in near), (name, q)


def test_the_load_and_the_server_are_known() -> None:
    (result,) = read_results(POISSON)
    assert (result.tool, result.version, result.model) == ("guidellm", "0.8.1", "llama-2-7b")
    assert (result.endpoint, result.backend, result.load.request_rate) == ("chat", "openai_http", 8.0)
    assert result.not_carried == ["output (20)"]


def test_a_request_is_due_when_the_strategy_wanted_it_unless_that_is_no_time() -> None:
    (constant,), (poisson,) = read_results(REJECTED), read_results(POISSON)
    waits = [each.sent - each.due for each in constant.requests]  # type: ignore[operator]
    assert 0.0 < min(waits) < max(waits) < 0.1
    assert np.diff([each.due for each in constant.requests]) == pytest.approx(1 / 25, abs=1e-3)
    assert [each.due for each in poisson.requests] == [each.sent for each in poisson.requests]
    unknown = "targeted_start of 20 requests is not a Unix time: each counts as due when it was sent"
    assert (constant.remarks, poisson.remarks) == ([EVEN_CHUNKS], [EVEN_CHUNKS, unknown])


def test_rejected_and_cancelled_requests_keep_their_reason(tmp_path: Path) -> None:
    (result,) = read_results(REJECTED)
    failed = [each for each in result.requests if each.status is RequestStatus.ERROR]
    assert len(failed) == 11
    assert {each.http_status for each in failed} == {429}
    assert {each.error for each in failed} == {"HTTP 429 Too Many Requests"}
    assert all(each.done_at is not None for each in failed)
    cancelled = [each for each in result.requests if each.status is RequestStatus.CANCELLED]
    assert any(each.output_tokens for each in cancelled)
    target = tmp_path / "run.servetop"
    record_import(result, REJECTED, target)
    assert verify(target).verdict is VerifyVerdict.SOUND


def test_each_benchmark_is_a_run() -> None:
    found = document()
    found["benchmarks"] += document(REJECTED)["benchmarks"]
    assert [each.label for each in read(found)] == ["poisson", "constant"]


def test_requests_that_were_never_sent_are_counted_and_a_sample_is_said() -> None:
    found = document()
    requests = found["benchmarks"][0]["requests"]
    never = copy.deepcopy(requests["successful"].pop())
    never["info"]["timings"]["request_start"] = None
    requests["incomplete"] = [never]
    (result,) = read(found)
    assert result.not_carried == ["output (19)", "requests that were never sent (1)"]
    assert result.remarks[-1] == "the file has 19 requests of 20 that succeeded: rates are too low by that factor"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"benchmarks": []}, "it has no benchmarks"),
        ({"benchmarks": [{"requests": {"successful": []}}]}, "benchmark 1: it has statistics but no requests"),
        ({"benchmarks": [{"requests": {"successful": [3]}}]}, "benchmark 1: a request of successful is not an object"),
    ],
)
def test_reports_without_requests_are_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        read({**document(), **change})
    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("request_start", "x", "benchmark 1: request_start is str"),
        ("request_end", None, "benchmark 1: request_end of a successful request is absent or before"),
        ("request_end", 1.0, "benchmark 1: request_end of a successful request is absent or before"),
    ],
)
def test_times_that_make_no_sense_are_refused(name: str, value: Any, reason: str) -> None:
    found = document()
    found["benchmarks"][0]["requests"]["successful"][1]["info"]["timings"][name] = value
    with pytest.raises(UsageError) as refused:
        read(found)
    assert str(refused.value).startswith(reason)
