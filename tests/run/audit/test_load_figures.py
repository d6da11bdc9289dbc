"""Figures of requests are those of a recording's summary, and errors are those of each request."""

from __future__ import annotations

import contextlib
import dataclasses
import math

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.events import RequestRecord, RequestStatus
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.run.audit.load_figures import load_figures, request_errors
from tests.run.audit.small_records import record


def test_figures_of_a_recording_are_those_of_its_summary() -> None:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        warmups = {each.index for each in reader.stages() if each.warmup}
        requests = [each for each in reader.requests(-math.inf, math.inf) if each.stage not in warmups]
        summary = summary_json(run_summary(reader))
    figures = load_figures(requests)
    assert figures["requests"] == summary["num_prompts"] > 100
    shared = figures.keys() & summary.keys()
    assert {"p99_itl_ms", "mean_tpot_ms", "output_throughput", "max_concurrent_requests", "completed"} <= shared
    for name in shared:
        assert figures[name] == pytest.approx(summary[name], rel=1e-3), name  # rows are in microseconds


def test_rate_and_concurrency_count_requests_of_any_status() -> None:
    requests = [
        record(0, sent=0.0, first=0.5, done=2.0),
        record(1, sent=1.0, first=None, done=2.0, status=RequestStatus.ERROR),
        record(2, sent=2.0, first=2.5, done=4.0, status=RequestStatus.CANCELLED),
    ]
    figures = load_figures(requests)
    assert (figures["arrival_rate"], figures["mean_concurrency"], figures["max_concurrent_requests"]) == (1.0, 1.25, 2)
    assert (figures["completed"], figures["failed"], figures["cancelled"]) == (1, 1, 1)
    assert figures["mean_ttft_ms"] == pytest.approx(500.0)


def test_a_load_without_requests_has_no_rates() -> None:
    figures = load_figures([])
    assert (figures["requests"], figures["arrival_rate"], figures["p99_ttft_ms"]) == (0, None, None)
    assert load_figures([record(0, sent=1.0, first=1.5, done=2.0)])["arrival_rate"] is None


def test_errors_are_the_clients_time_minus_the_servers() -> None:
    truth = [record(n, sent=n + 0.01, first=n + 0.5, done=n + 1.0) for n in range(3)]
    client = [shifted(each, sent=-0.01, first=0.002, done=0.003, by=-7.0) for each in truth]
    client[2] = dataclasses.replace(client[2], status=RequestStatus.ERROR)
    found = {each.name: each for each in request_errors(truth, client, shift=7.0)}
    assert found["arrival"].p50 == pytest.approx(10.0)
    assert found["ttft"].mean == pytest.approx(12.0)
    assert found["e2el"].p99 == pytest.approx(13.0)
    assert "arrival" not in {each.name for each in request_errors(truth, client, shift=None)}


def test_no_pair_that_succeeded_has_no_error() -> None:
    failed = [record(0, sent=0.0, first=None, done=1.0, status=RequestStatus.ERROR)]
    (arrival, ttft, *_) = request_errors(failed, failed, shift=0.0)
    assert (arrival.p50, ttft.p50) == (0.0, None)


def shifted(each: RequestRecord, *, sent: float, first: float, done: float, by: float) -> RequestRecord:
    assert each.sent is not None
    assert each.first_token_at is not None
    assert each.done_at is not None
    return dataclasses.replace(
        each,
        sent=each.sent + sent + by,
        first_token_at=each.first_token_at + first + by,
        done_at=each.done_at + done + by,
    )
