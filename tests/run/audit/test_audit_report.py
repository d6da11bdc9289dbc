"""The report of an audit: what the server saw of the requests of the result, and what the result tells."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.events import RequestRecord
from servetop.run.audit.audit_report import AuditReport, audit_report
from servetop.run.audit.audit_run import ObservedLoad
from servetop.run.audit.client_result import ClientResult
from servetop.run.audit.request_match import MatchedBy
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.server.observed_connection import ProbeRequests
from tests.run.audit.small_records import record

ANCHOR = ClockAnchor(origin_ns=5_000_000_000, wall_epoch_s=1e9)
SEEN = [
    record(0, sent=0.0, first=0.1, done=0.4),
    *(record(n, sent=2.0 + n, first=2.1 + n, done=2.4 + n) for n in (1, 2, 3)),
]
OBSERVED = ObservedLoad(
    spec=sim_spec("llama-2-7b", gpu="a100-40", engine="vllm-0.2.1", settings={}),
    requests=SEEN,
    others=[ProbeRequests(method="GET", path="/health", status=200, count=3)],
    anchor=ANCHOR,
    seconds=6.0,
    lags=[0.001, 0.002],
    exit_code=0,
    ending="exited with status 0",
)  # fmt: skip


def reported(requests: Sequence[RequestRecord], *, times_known: bool = True) -> AuditReport:
    result = ClientResult(
        tool="bench", version="1", requests=requests, anchor=ANCHOR, times_known=times_known, remarks=["odd"]
    )
    return audit_report(OBSERVED, ["bench", "{url}"], result=result, file="r.json")


def slower(each: RequestRecord) -> RequestRecord:
    """The same request as a client saw it that reads 10 ms late."""
    assert each.first_token_at is not None
    assert each.done_at is not None
    return dataclasses.replace(each, first_token_at=each.first_token_at + 0.01, done_at=each.done_at + 0.02)


def test_only_the_requests_of_the_result_are_compared() -> None:
    report = reported([slower(each) for each in SEEN[1:]])
    assert (report.requests.seen, report.requests.before, report.requests.after) == (4, 1, 0)
    assert report.result is not None
    assert (report.result.matched_by, report.result.remarks) == (MatchedBy.CLOCK, ("odd",))
    figures = {each.name: each for each in report.figures}
    assert (figures["requests"].truth, figures["requests"].client, figures["requests"].error_percent) == (3, 3, 0.0)
    assert figures["mean_ttft_ms"].error_percent == pytest.approx(10.0)
    assert figures["failed"].error_percent is None  # of nothing
    assert {each.name: each.mean for each in report.request_errors} == pytest.approx(
        {"arrival": 0.0, "ttft": 10.0, "tpot": 10.0 / 3, "e2el": 20.0}
    )


def test_figures_over_time_need_the_times_of_sending() -> None:
    report = reported(SEEN[1:], times_known=False)
    assert report.result is not None
    assert report.result.matched_by is MatchedBy.ORDER
    client = {each.name: each.client for each in report.figures}
    assert client["arrival_rate"] is client["output_throughput"] is client["mean_concurrency"] is None
    assert client["mean_ttft_ms"] == pytest.approx(100.0)
    assert "arrival" not in {each.name for each in report.request_errors}


def test_requests_that_never_arrived_are_said_and_not_matched() -> None:
    report = reported([*SEEN, record(9, sent=5.5, first=None, done=6.0)])
    assert report.result is not None
    assert report.result.remarks == ("1 request of the result did not reach the server", "odd")
    assert (report.result.matched_by, report.request_errors) == (MatchedBy.NOTHING, ())
    assert {each.name: each.error_percent for each in report.figures}["requests"] == pytest.approx(25.0)


def test_without_a_result_all_requests_are_the_truth() -> None:
    report = audit_report(OBSERVED, ["bench", "{url}"])
    assert (report.result, report.request_errors, report.requests.before) == (None, (), 0)
    figures = {each.name: each for each in report.figures}
    assert (figures["requests"].truth, figures["requests"].client) == (4, None)
    assert report.server.lag_p99_ms == pytest.approx(1.99)
