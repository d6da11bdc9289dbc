"""Results of `vllm bench serve` become recordings with the same requests and statistics, and go back unchanged."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RequestStatus
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.reports.export.stage_rows import exported_stages
from servetop.reports.export.vllm_result import vllm_result
from servetop.reports.summary.summary import run_summary
from servetop.run.imports.record_import import record_import
from servetop.run.imports.vllm_bench import read_vllm_result

RESULTS = Path(__file__).parents[2] / "corpus" / "results"
RUST = ["vllm-rust-rate.json", "vllm-rust-closed-loop.json", "vllm-rust-failed.json"]
PUBLISHED = ["vllm-rate.json", "vllm-closed-loop.json", *RUST]
GOLDEN = Path(__file__).parents[2] / "golden"
RECORDINGS = ["sample", "sample:h200", str(GOLDEN / "vllm.servetop"), str(GOLDEN / "without_metrics.servetop")]
STATISTICS = [f"{name}_{metric}_ms" for metric in ("ttft", "tpot", "itl", "e2el")
              for name in ("mean", "median", "std", "p50", "p90", "p95", "p99")]  # fmt: skip
NOT_THE_SAME = {"request_goodput", "max_output_tokens_per_s"}
"""Without objectives there is no goodput, and the seconds of the peak begin with the first request of the file."""
SMALL: dict[str, Any] = {
    "date": "20260102-030405", "endpoint_type": "openai", "backend": "openai", "model_id": "m", "tokenizer_id": "m",
    "num_prompts": 3, "request_rate": 2.0, "burstiness": 1.0, "max_concurrency": None, "duration": 1.5, "completed": 2,
    "failed": 1, "input_lens": [10, 20, 30], "output_lens": [3, 1, 0], "ttfts": [0.1, 0.2, 0.0],
    "itls": [[0.05, 0.07], [], []], "start_times": [100.0, 100.5, 101.0], "errors": ["", "", "Bad Gateway"],
}  # fmt: skip
"""What older versions write: no latencies and no queue times."""


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def written(result: dict[str, Any], folder: Path) -> Path:
    source, target = folder / "result.json", folder / "run.servetop"
    source.write_text(json.dumps(result), encoding="utf-8")
    target.unlink(missing_ok=True)
    record_import(read_vllm_result(result), source, target)
    return target


def exported(path: Path) -> list[dict[str, Any]]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return [json.loads("".join(vllm_result(reader, each))) for each in exported_stages(reader, None)]


def tpots(requests: list[RequestRecord]) -> Iterator[float]:
    """vLLM's definition, from the rows."""
    for each in requests:
        if each.output_tokens > 1 and each.e2el is not None and each.ttft is not None:
            yield (each.e2el - each.ttft) / (each.output_tokens - 1)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_percentiles_follow_from_the_rows(name: str) -> None:
    result = document(name)
    requests = [each for each in read_vllm_result(result).requests if each.status is RequestStatus.OK]
    values: dict[str, list[Any]] = {
        "ttft": [each.ttft for each in requests],
        "tpot": [*tpots(requests)],
        "itl": [gap for each in requests for gap in np.diff(each.chunk_times)],
        "e2el": [each.e2el for each in requests],
    }
    for metric, found in values.items():
        for q in (50, 90, 95, 99):
            assert np.percentile(found, q) * 1e3 == pytest.approx(result[f"p{q}_{metric}_ms"], abs=1e-9)
        assert np.mean(found) * 1e3 == pytest.approx(result[f"mean_{metric}_ms"], abs=1e-9)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_summary_of_an_import_has_the_published_statistics(name: str, tmp_path: Path) -> None:
    result = document(name)
    path = written(result, tmp_path)
    assert verify(path).verdict is VerifyVerdict.SOUND
    with contextlib.closing(RecordingReader.open(path)) as reader:
        summary = summary_json(run_summary(reader))
    for key in STATISTICS:
        assert summary[key] == pytest.approx(result[key], abs=0.001), key  # gaps are recorded to the microsecond
    for key in ("completed", "failed", "total_input_tokens", "total_output_tokens", "model_id", "max_concurrency",
                "request_rate"):  # fmt: skip
        assert summary[key] == result[key], key
    assert summary["imported"] == "vLLM bench, result.json"
    assert (summary["trust"]["verdict"], summary["trust"]["slip_p99_ms"], summary["trust"]["compared"]) == (
        "unknown", None, [],
    )  # fmt: skip
    assert summary["trust"]["offered_rate"] is summary["trust"]["token_source"] is None


def test_the_benchmark_in_rust_names_its_errors_and_repeats_them() -> None:
    result = read_vllm_result(document("vllm-rust-failed.json"))
    failed = [each for each in result.requests if each.status is not RequestStatus.OK]
    assert {each.error for each in failed} == {
        "Stream error: error decoding response body", "Connection refused (os error 111)",
    }  # fmt: skip
    assert "failed_requests" not in result.not_carried
    assert result.wall_epoch_s == datetime(2026, 11, 30, 10, 4, 1, tzinfo=UTC).timestamp()


def test_an_import_has_no_engine_samples_and_no_lateness_of_the_client(tmp_path: Path) -> None:
    with contextlib.closing(RecordingReader.open(written(document("vllm-rate.json"), tmp_path))) as reader:
        update = reader.poll()
    ticks = [each.client for each in update.ticks]
    assert all(tick.engine is None and not tick.gpus for tick in update.ticks)
    assert sum(each.ok for each in ticks) == sum(each.sent for each in ticks) == 24
    assert sum(each.output_tokens for each in ticks) == 24 * 12
    assert sum(each.ttft.count for each in ticks) == 24
    assert sum(each.itl.count for each in ticks) == 24 * 11
    assert max(each.gauges.in_flight for each in ticks) <= 4
    assert ticks[-1].gauges.in_flight == ticks[-1].gauges.queued == 0
    assert not any(each.slip.count or each.loop_lag.count or each.stamped or each.cpu_seconds for each in ticks)


@pytest.mark.parametrize("name", RECORDINGS)
def test_an_exported_stage_is_the_same_after_an_import(name: str, tmp_path: Path) -> None:
    for result in exported(resolve(name)):
        (again,) = exported(written(result, tmp_path))
        for key, value in result.items():
            if key not in NOT_THE_SAME and not ("queue_time" in key and result["request_rate"] == "inf"):
                same(key, again[key], value)


def same(key: str, found: Any, expected: Any) -> None:
    if isinstance(expected, list) and key != "errors":
        assert len(found) == len(expected), key
        for left, right in zip(found, expected, strict=True):
            assert left == pytest.approx(right, abs=2e-6), key
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=0.002), key
    else:
        assert found == expected, key


def test_of_older_files_the_last_chunk_is_the_end_and_a_failure_has_none(tmp_path: Path) -> None:
    result = read_vllm_result(SMALL)
    first, second, failed = result.requests
    assert [first.e2el, second.e2el] == pytest.approx([0.22, 0.2])
    assert failed.done_at is None
    assert [each.due for each in result.requests] == [0.0, 0.5, 1.0]
    assert (failed.status, failed.error, failed.first_token_at) == (RequestStatus.ERROR, "Bad Gateway", None)
    assert result.origin_ns == 100_000_000_000
    path = written(SMALL, tmp_path)
    assert verify(path).verdict is VerifyVerdict.SOUND
    (again,) = exported(path)
    assert (again["completed"], again["failed"], again["errors"]) == (2, 1, SMALL["errors"])


def test_a_wait_for_the_concurrency_limit_is_before_the_time_sent() -> None:
    limited = {**SMALL, "max_concurrency": 1, "queue_times": [0.0, 0.25, 0.0]}
    result = read_vllm_result(limited)
    assert [(each.due, each.sent) for each in result.requests] == [(0.0, 0.0), (0.25, 0.5), (1.0, 1.0)]
    assert not result.remarks
    without = read_vllm_result({**SMALL, "max_concurrency": 1})
    assert without.remarks == ["the file has no queue_times: each request counts as due when it was sent"]


def test_metadata_stays_and_what_has_no_place_is_named() -> None:
    more = {"gpu": "H100", "steady_state": {"p99": 1.0}, "generated_texts": ["a", "b", ""], "request_goodput": 1.0}
    result = read_vllm_result({**SMALL, **more, "errors": ["", "", "Traceback\n  line\nValueError: broken"]})
    assert result.metadata == {"gpu": "H100"}
    assert result.requests[2].error == "ValueError: broken"
    assert [each.partition(" (")[0] for each in result.not_carried] == [
        "generated_texts", "errors before their last line", "request_goodput", "steady_state",
    ]  # fmt: skip
    assert not read_vllm_result({key: value for key, value in SMALL.items() if key != "completed"}).remarks
    assert read_vllm_result({**SMALL, "completed": 3}).remarks == [
        "the file says that 3 requests completed, its lists say 2"
    ]


def test_a_ramp_has_the_rate_at_each_time(tmp_path: Path) -> None:
    ramp = {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 4, "request_rate": "inf"}
    with contextlib.closing(RecordingReader.open(written({**SMALL, **ramp}, tmp_path))) as reader:
        update = reader.poll()
    (stage,) = update.stages
    assert (stage.ramp_from, stage.request_rate, stage.ramp_strategy) == (1.0, 4.0, "linear")
    rates = [each.client.gauges.request_rate for each in update.ticks]
    assert rates[0] == pytest.approx(2.0)
    assert rates == sorted(rates, key=lambda rate: rate or 0.0)
    assert rates[-1] == 4.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ttfts": None}, "it has statistics but no requests (ttfts missing)"),
        ({"ttfts": [], "itls": [], "input_lens": [], "output_lens": [], "start_times": [], "errors": []}, "are empty"),
        ({"itls": [[], []]}, "lists are of different lengths (input_lens 3, output_lens 3, ttfts 3, itls 2,"),
        ({"ttfts": [0.1, -0.2, 0.0]}, "ttfts of request 2 is -0.2: a time from 0"),
        ({"ttfts": [0.1, math.nan, 0.0]}, "ttfts of request 2 is nan: a time from 0"),
        ({"itls": [[0.1, "x"], [], []]}, "itls of request 1: gap of request 2 is str: a time from 0"),
        ({"itls": [None, [], []]}, "itls of request 1 is not a list"),
        ({"input_lens": [1.5, 1, 1]}, "input_lens of request 1 is 1.5: a number of tokens"),
        ({"output_lens": [3, True, 1]}, "output_lens of request 2 is True: a number of tokens"),
        ({"start_times": [0.0, 0.5, 1e9]}, "the end of request 3 is 1000000000.0: a time from 0"),
        ({"latencies": [0.05, 0.2, 0.0]}, "latencies of request 1 is below its ttfts"),
        ({"request_rate": "fast"}, "request_rate is str: a number above 0"),
        ({"max_concurrency": 0}, "max_concurrency is 0: a number of requests"),
        ({"start_times": None}, "it has no start_times, and arrivals at 2 req/s are random"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_vllm_result({**SMALL, **change})
    assert reason in str(refused.value)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.001, 5), st.lists(st.floats(0, 1), max_size=6)), min_size=1))
def test_requests_come_in_order_of_due_and_keep_their_times(rows: list[tuple[float, float, list[float]]]) -> None:
    starts, ttfts, gaps = (list(each) for each in zip(*rows, strict=True))
    lists = {"start_times": starts, "ttfts": ttfts, "itls": gaps, "input_lens": [1] * len(rows), "errors": None}
    result = read_vllm_result(
        {**SMALL, **lists, "output_lens": [len(each) + 1 for each in gaps], "completed": len(rows)}
    )
    assert not result.remarks
    found = [(each.due, each.ttft, each.e2el, each.chunk_times.size) for each in result.requests]
    order = sorted(range(len(rows)), key=lambda row: (starts[row], row))
    for (due, ttft, e2el, chunks), row in zip(found, order, strict=True):
        assert due == starts[row] - min(starts)
        assert [ttft, e2el] == pytest.approx([ttfts[row], ttfts[row] + sum(gaps[row])])
        assert chunks == len(gaps[row]) + 1
