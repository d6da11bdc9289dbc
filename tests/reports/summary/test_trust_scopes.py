"""The same data give the same trust verdict live, for a stage, a steady window and a run."""

import dataclasses
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.summary.summary_json import summary_json
from servetop.analysis.trust.live_trust import live_trust
from servetop.analysis.trust.steady_state import METHOD, SteadyWindow
from servetop.core.events import EngineSample, RequestRecord, RunEnd
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import stage

SECONDS = 40
TAKES = 2.0
"""Seconds from sent to done: ten requests/s are 20 in flight."""
TTFT, OWN_TTFT = TAKES / 20, 0.08
"""Seconds to the first token, by the client and by the engine."""


def finished_by(at: float) -> float:
    """Tokens of the requests that have ended: 20 each, ten requests per second from TAKES on."""
    return 200.0 * max(0.0, min(at, SECONDS) - TAKES)


def received_by(at: float) -> float:
    return 200.0 * max(0.0, min(at, SECONDS) - TAKES / 2)


def engine_sample(at: float, *, generated: Callable[[float], float], running: float) -> EngineSample:
    first_tokens = 10.0 * max(0.0, min(at, SECONDS) - TAKES / 20)
    return EngineSample(
        scrape_start=at - 0.01,
        scrape_end=at + 0.01,
        running=running,
        waiting=0.0,
        generation_tokens_total=generated(at),
        first_token_seconds_total=OWN_TTFT * first_tokens,
        first_tokens_total=first_tokens,
    )


def client_tick(index: int, *, loop_lag: float, itl_uncertainty: LogHistogram, ttft: float = TTFT) -> ClientTick:
    start, end = index / 4, (index + 1) / 4
    tokens = received_by(end) - received_by(start)
    return ClientTick(
        index=index,
        gauges=LoadGauges(stage=0, request_rate=10.0, in_flight=20),
        due=3 if index % 2 else 2,
        sent=3 if index % 2 else 2,
        ok=3 if index % 2 else 2,
        output_tokens=int(tokens),
        chunks=int(tokens),
        output_len=LogHistogram.of([20.0] * round((finished_by(end) - finished_by(start)) / 20)),
        ttft=LogHistogram.of([ttft] * (3 if index % 2 else 2)),
        slip=LogHistogram.of([0.001] * 2),
        itl=LogHistogram.of([TAKES / 20] * 10),
        itl_uncertainty=itl_uncertainty,
        loop_lag=LogHistogram.of([loop_lag]),
    )


@pytest.mark.parametrize(("stopped_for", "known"), [(0.0, True), (5.0, True), (8.5, False), (20.0, False)])
def test_the_last_scrapes_before_a_restart_give_no_token_error(stopped_for: float, known: bool) -> None:
    ticks = []
    for index in range(160):
        scraped = (index + 1) / 4 <= SECONDS - stopped_for
        sample = engine_sample(index / 4 + 0.1, generated=lambda at: 20 * received_by(at), running=20.0)
        client = client_tick(index, loop_lag=0.001, itl_uncertainty=LogHistogram.of([]))
        ticks.append(Tick(client=client, engine=sample if scraped else None))
    trust = live_trust(TickHistory(ticks), 120, 160)
    assert (trust.token_error == trust.token_error) is known


@pytest.mark.parametrize(
    ("engine", "client", "verdict"),
    [
        ({}, {}, "ok"),
        ({"generated": finished_by}, {}, "ok"),  # an engine that counts a request's tokens when it ends
        ({"generated": lambda at: 1.2 * received_by(at)}, {}, "suspect"),
        ({"generated": lambda at: 0.02 * received_by(at)}, {}, "suspect"),
        ({"running": 21.4}, {}, "ok"),  # 7 % of 20 in flight: 1.4 requests in transit
        ({"running": 22.0}, {}, "suspect"),
        ({}, {"itl_uncertainty": LogHistogram.of([0.05] * 10)}, "suspect"),
        ({}, {"loop_lag": 0.3}, "client-bound"),
        ({}, {"loop_lag": 0.03}, "suspect"),
        ({}, {"loop_lag": 0.02}, "ok"),
        ({}, {"ttft": 0.15}, "suspect"),
    ],
    ids=[
        "consistent", "counts finished requests", "more tokens", "few tokens", "in transit", "more requests",
        "uncertain gaps", "lagging loop", "lag of TTFT", "little lag", "late first tokens",
    ],
)  # fmt: skip
def test_every_scope_gives_the_same_verdict(
    tmp_path: Path,
    header: RunHeader,
    make_request: Callable[..., RequestRecord],
    engine: dict[str, Any],
    client: dict[str, Any],
    verdict: str,
) -> None:
    values: dict[str, Any] = {"loop_lag": 0.001, "itl_uncertainty": LogHistogram.of([])} | client
    reported: dict[str, Any] = {"generated": received_by, "running": 20.0} | engine
    ticks = [
        Tick(client=client_tick(index, **values), engine=engine_sample((index + 0.5) / 4, **reported))
        for index in range(SECONDS * 4)
    ]
    requests = [
        make_request(number, number / 10, slip=0.001, tokens_at=[TAKES / 20 * (i + 1) for i in range(20)])
        for number in range(-20, 10 * SECONDS)
    ]
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(stages=[dataclasses.replace(stage(0, 0.0), request_rate=10.0)]))
    for tick in ticks:
        assert tick.engine is not None
        recorder.commit(TickTransaction(tick=tick, engine_samples=[tick.engine]))
    recorder.commit(TickTransaction(requests=requests))
    window = SteadyWindow(start=10.0, end=38.0, method=METHOD)
    recorder.close(RunEnd(at=float(SECONDS), exit_code=0, reason=""), steady={0: window})
    with closing(RecordingReader.open(recorder.path)) as reader:
        history = TickHistory(reader.ticks())
        summary = summary_json(run_summary(reader))
    (of_stage,) = summary["stages"]
    verdicts = {
        "live": str(live_trust(history, 80, 120).verdict),
        "live, all of it": str(live_trust(history, 0, len(history)).verdict),
        "stage": of_stage["trust"]["verdict"],
        "steady window": of_stage["steady"]["trust"]["verdict"],
        "run": summary["trust"]["verdict"],
    }
    assert verdicts == dict.fromkeys(verdicts, verdict)
