"""The trust metrics of small runs, compared with manual calculations."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.events import EngineSample, RequestRecord, RequestStatus, RunEnd
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import sample, stage

MakeRequest = Callable[..., RequestRecord]
MakeTick = Callable[..., Tick]
Summarise = Callable[..., dict[str, Any]]


def trusted_ticks(count: int, **fields: Any) -> list[Tick]:
    gauges = LoadGauges(**{name: fields.pop(name) for name in ("max_concurrency", "queued") if name in fields})
    return [
        Tick(client=ClientTick(index=i, gauges=gauges, loop_lag=LogHistogram.of([0.001]), **fields))
        for i in range(count)
    ]


def test_a_consistent_run_is_trusted(summary_of: Summarise, make_request: MakeRequest) -> None:
    requests = [make_request(i, i * 0.1, slip=0.0005, tokens_at=[0.1, 0.4]) for i in range(80)]
    samples = [sample(0.25 * i + 0.005, running=4.0, waiting=0.0) for i in range(2, 30)]
    trust = summary_of(*requests, samples=samples, ticks=trusted_ticks(32))["trust"]
    assert trust["slip_p99_ms"] == pytest.approx(0.5, abs=0.01)
    assert trust["slip_basis"] == "all requests: the concurrency limit delayed none"
    assert trust["loop_lag_p99_ms"] == pytest.approx(1.0, rel=0.01)
    assert trust["offered_rate"] == pytest.approx(10.0)
    assert trust["sent_rate"] == pytest.approx(10.0)
    assert abs(trust["littles_law_error"]) < 0.05
    assert (trust["verdict"], trust["reasons"], trust["token_error"]) == ("ok", [], None)


def test_requests_that_the_server_refused_are_not_missing_from_those_sent(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    served = [make_request(i, i * 0.1) for i in range(80)]
    refused = {"sent": None, "headers_at": None, "status": RequestStatus.ERROR, "error": "connection refused"}
    failed = [make_request(i, i * 0.1, tokens_at=(), **refused) for i in range(80, 100)]
    trust = summary_of(*served, *failed, ticks=trusted_ticks(40))["trust"]
    assert trust["sent_rate"] < 0.97 * trust["offered_rate"]
    assert (trust["verdict"], trust["sent_exemption"]) == ("ok", "others refused")


def test_littles_law_compares_means_weighted_by_time(summary_of: Summarise, make_request: MakeRequest) -> None:
    requests = [make_request(i, 0.0, tokens_at=[0.1, 10.0]) for i in range(10)]
    instants = [1.0, 1.5, 2.0, 3.0]  # they represent 0.25, 0.5, 0.75 and 0.5 s
    held = [10.0, 10.0, 10.0, 2.0]
    samples = [sample(at, running=value - 1.0, waiting=1.0) for at, value in zip(instants, held, strict=True)]
    trust = summary_of(*requests, samples=samples, ticks=trusted_ticks(40))["trust"]
    assert trust["littles_law_error"] == pytest.approx((0.25 * 10 + 0.5 * 10 + 0.75 * 10 + 0.5 * 2) / 2.0 / 10 - 1)
    assert trust["verdict"] == "suspect"


def test_an_engine_that_does_not_export_its_queue_is_not_compared(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    trust = summary_of(make_request(1, 0.0), samples=[sample(0.1, running=1.0)], ticks=trusted_ticks(4))["trust"]
    assert (trust["littles_law_error"], trust["verdict"]) == (None, "ok")


def test_late_requests_mean_that_the_client_was_the_bottleneck(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    trust = summary_of(*[make_request(i, i * 0.1, slip=0.05 * i) for i in range(40)])["trust"]
    assert trust["verdict"] == "client-bound"
    assert trust["slip_p99_ms"] == pytest.approx(np.percentile([50.0 * i for i in range(40)], 99))


def test_a_few_slightly_late_requests_count_as_delivered(summary_of: Summarise, make_request: MakeRequest) -> None:
    few = [make_request(i, i * 0.002, slip=0.0005 * i) for i in range(4)]
    trust = summary_of(*few, ticks=trusted_ticks(4))["trust"]
    assert trust["sent_rate"] < 0.9 * trust["offered_rate"]
    assert (trust["verdict"], trust["reasons"]) == ("ok", [])


def test_waiting_for_the_concurrency_limit_is_not_slip(summary_of: Summarise, make_request: MakeRequest) -> None:
    due = [0.0, 0.1, 0.2, 3.0]  # at most two in flight, a second each: the third waits for the first
    slips = [0.001, 0.001, 0.9, 0.001]
    requests = [
        make_request(i, at, slip=slip, tokens_at=[0.5, 1.0])
        for i, (at, slip) in enumerate(zip(due, slips, strict=True))
    ]
    summary = summary_of(*requests, ticks=trusted_ticks(20, max_concurrency=2, queued=0))
    trust = summary["trust"]
    assert trust["slip_p99_ms"] == pytest.approx(1.0)
    assert trust["slip_basis"] == "3 requests that were due and sent while fewer than the limit were in flight"
    assert (trust["held_back"], trust["verdict"]) == (True, "ok")
    assert summary["p99_client_queue_time_ms"] > 800


@pytest.mark.parametrize("status", [RequestStatus.CANCELLED, RequestStatus.ERROR])
def test_requests_that_ended_before_they_were_sent_leave_the_limit_as_it_is(
    summary_of: Summarise, make_request: MakeRequest, status: RequestStatus
) -> None:
    unsent = {"sent": None, "headers_at": None, "status": status, "done_at": 0.05, "error": "never sent"}
    before = [make_request(i, 0.0, tokens_at=(), **unsent) for i in range(100, 110)]
    slips = [0.001, 0.001, 0.9, 0.001]
    limited = [
        make_request(i, at, slip=slip, tokens_at=[0.5, 1.0])
        for i, (at, slip) in enumerate(zip([0.1, 0.2, 0.3, 3.0], slips, strict=True))
    ]
    trust = summary_of(*before, *limited, ticks=trusted_ticks(20, max_concurrency=2, queued=0))["trust"]
    assert trust["slip_basis"] == "3 requests that were due and sent while fewer than the limit were in flight"
    assert (trust["slip_p99_ms"], trust["verdict"]) == (pytest.approx(1.0), "ok")


def test_the_engines_token_counter_is_compared_with_the_clients(summary_of: Summarise) -> None:
    ticks = trusted_ticks(40, output_tokens=100)  # 400 tokens/s
    samples = [sample(float(i), generation_tokens_total=5000.0 + 440.0 * i) for i in range(1, 9)]
    summary = summary_of(samples=samples, ticks=ticks)
    assert summary["trust"]["token_error"] == pytest.approx(0.10)
    assert summary["trust"]["reasons"] == ["engine counts +10% tokens vs client"]


@pytest.mark.parametrize(
    ("between", "generated", "error"),
    [
        (2000, 2000, 0.0),
        (2000, 4000, 0.0),
        (2000, 5000, 0.25),
        (2000, 1000, -0.5),
        (0, 1300, 0.0),
        (0, 0, None),
        (200, 100, None),  # too few to compare
    ],
)
def test_tokens_in_the_ticks_of_the_scrapes_may_precede_or_follow_them(
    summary_of: Summarise, between: int, generated: int, error: float | None
) -> None:
    edge = 1000 if between != 200 else 0
    counts = [edge, 0, between, 0, 0, edge]  # in ticks of 0.25 s: the scrapes fall into the first and the last one
    ticks = [Tick(client=ClientTick(index=index, output_tokens=count)) for index, count in enumerate(counts)]
    samples = [sample(at, generation_tokens_total=total) for at, total in ((0.1, 5.0), (1.4, 5.0 + generated))]
    assert summary_of(samples=samples, ticks=ticks)["trust"]["token_error"] == error


def test_inter_token_latencies_of_events_read_together_are_uncertain(
    summary_of: Summarise, make_request: MakeRequest
) -> None:
    requests = [make_request(i, i * 0.1, tokens_at=[0.1, 0.12]) for i in range(20)]
    ticks = trusted_ticks(16, chunks=250)
    doubtful = Tick(
        client=ClientTick(index=16, loop_lag=LogHistogram.of([0.001]), itl_uncertainty=LogHistogram.of([0.02] * 42))
    )
    trust = summary_of(*requests, ticks=[*ticks, doubtful])["trust"]
    assert trust["itl_uncertainty_p99_ms"] == pytest.approx(20.0, rel=0.02)
    assert trust["verdict"] == "suspect"
    (reason,) = trust["reasons"]
    assert reason.endswith("ms: many events were read together")


LAGGING = LogHistogram.of([0.5] * 20)


@pytest.mark.parametrize(("stamped", "verdict"), [(50, "ok"), (49, "client-bound")], ids=["all", "not all"])
def test_reading_kernel_timestamped_chunks_late_is_not_a_bottleneck(
    summary_of: Summarise, make_request: MakeRequest, stamped: int, verdict: str
) -> None:
    requests = [make_request(i, i * 0.1) for i in range(20)]
    ticks = [Tick(client=ClientTick(index=i, chunks=50, stamped=stamped, loop_lag=LAGGING)) for i in range(8)]
    trust = summary_of(*requests, ticks=ticks)["trust"]
    assert (trust["stamped"], trust["verdict"]) == (stamped == 50, verdict)


@pytest.mark.parametrize(
    ("took", "verdict"), [(10.0, "ok"), (1.0, "client-bound")], ids=["long requests", "short requests"]
)
def test_requests_of_a_closed_loop_may_be_late_by_a_small_fraction_of_their_time(
    summary_of: Summarise, make_request: MakeRequest, took: float, verdict: str
) -> None:
    closed = stage(0, 0.0, rate=float("inf"), max_concurrency=1)
    requests = [make_request(i, i * (took + 0.15), slip=0.15, tokens_at=[took / 2, took]) for i in range(5)]
    summary = summary_of(*requests, stages=[closed], ticks=trusted_ticks(8, max_concurrency=1))
    assert summary["trust"]["late_share"] == pytest.approx(0.15 / (took + 0.15))
    assert (summary["trust"]["verdict"], summary["stages"][0]["trust"]["verdict"]) == (verdict, verdict)
    assert summary["trust"]["slip_p99_ms"] == pytest.approx(150.0)


def test_an_open_loop_is_judged_by_its_schedule(summary_of: Summarise, make_request: MakeRequest) -> None:
    requests = [make_request(i, i * 10.15, slip=0.15, tokens_at=[5.0, 10.0]) for i in range(5)]
    trust = summary_of(*requests, stages=[stage(0, 0.0)], ticks=trusted_ticks(8))["trust"]
    assert (trust["late_share"], trust["verdict"]) == (None, "client-bound")


def test_a_finished_run_is_judged_by_its_request_rows(
    tmp_path: Path, header: RunHeader, make_request: MakeRequest, make_tick: MakeTick
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(stages=[stage(0, 0.0)]))
    for number in range(8):  # 0 in flight by the ticks' gauge, 1 by the rows
        sample = EngineSample(scrape_start=number * 0.25, scrape_end=number * 0.25 + 0.01, running=1.0, waiting=0.0)
        request = make_request(number, number * 0.25, tokens_at=(0.1, 0.24))
        recorder.commit(TickTransaction(tick=make_tick(number), requests=[request], engine_samples=[sample]))
    end = RunEnd(at=2.0, exit_code=0, reason="")
    with closing(RecordingReader.open(recorder.path)) as reader:
        before = summary_json(run_summary(reader, end=end))["trust"]
    recorder.close(end)
    with closing(RecordingReader.open(recorder.path)) as reader:
        after = summary_json(run_summary(reader))["trust"]
    assert before == after


def test_a_long_scrape_is_not_compared(summary_of: Summarise, make_request: MakeRequest) -> None:
    requests = [make_request(i, 0.0, tokens_at=[0.1, 10.0]) for i in range(10)]
    brief = [sample(at, running=10.0, waiting=0.0) for at in (1.0, 1.5, 8.0)]
    late = EngineSample(scrape_start=2.0, scrape_end=7.5, running=0.0, waiting=0.0)
    trust = summary_of(*requests, samples=[*brief[:2], late, brief[2]], ticks=trusted_ticks(40))["trust"]
    assert (trust["littles_law_error"], trust["verdict"]) == (0.0, "ok")


def test_the_engines_counter_may_be_read_at_any_time_of_the_scrape(summary_of: Summarise) -> None:
    ticks = trusted_ticks(40, output_tokens=100)  # 400 tokens/s
    last = EngineSample(scrape_start=2.0, scrape_end=3.0, generation_tokens_total=600.0)
    trust = summary_of(samples=[sample(1.0, generation_tokens_total=0.0), last], ticks=ticks)["trust"]
    assert trust["token_error"] == 0.0


@pytest.mark.parametrize(("ends_short", "error"), [(False, None), (True, 1.0)], ids=["to", "across"])
def test_tokens_are_compared_across_a_long_scrape_but_not_to_one(
    summary_of: Summarise, ends_short: bool, error: float | None
) -> None:
    ticks = trusted_ticks(40, output_tokens=100)  # 400 tokens/s
    late = EngineSample(scrape_start=2.0, scrape_end=8.0, generation_tokens_total=2000.0)
    last = [sample(9.0, generation_tokens_total=6400.0)] if ends_short else []
    trust = summary_of(samples=[sample(1.0, generation_tokens_total=0.0), late, *last], ticks=ticks)["trust"]
    assert trust["token_error"] == (error if error is None else pytest.approx(error, rel=0.05))
