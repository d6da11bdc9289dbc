"""Each anomaly is reported once, at its start, however the ticks are grouped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.verdicts.anomalies import Anomaly, AnomalyDetector, AnomalyKind, severity_of
from servetop.core.events import EngineSample, LogLine, Severity, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, LoadGauges, Tick


def tick(
    index: int, *, tokens: int = 10, in_flight: int = 4, kv: float | None = None, preempted: float | None = None,
    waiting: float | None = None, due: int = 0, ok: int = 0, stage: int = 0, ttft: Sequence[float] = (),
) -> Tick:  # fmt: skip
    sample = EngineSample(scrape_start=0, scrape_end=0, kv_usage=kv, preemptions_total=preempted, waiting=waiting)
    client = ClientTick(
        index=index, output_tokens=tokens, due=due, ok=ok, ttft=LogHistogram.of(ttft),
        gauges=LoadGauges(stage=stage, in_flight=in_flight),
    )  # fmt: skip
    return Tick(client=client, engine=sample)


def found(ticks: Sequence[Tick], *, streamed: bool = True) -> list[tuple[AnomalyKind, float]]:
    detector = AnomalyDetector(streamed=streamed)
    detector.update(TickHistory(ticks))
    return [(anomaly.kind, anomaly.at) for anomaly in detector.all]


def test_kv_above_90_percent_is_reported_again_only_after_falling_below_80() -> None:
    usage = [0.5, 0.91, 0.95, 0.85, 0.92, 0.79, 0.91]
    ticks = [tick(index, kv=share) for index, share in enumerate(usage)]
    assert found(ticks) == [(AnomalyKind.KV_FULL, 0.5), (AnomalyKind.KV_FULL, 1.75)]


def test_preemptions_are_reported_again_after_ten_seconds_without_any() -> None:
    counts = [0, 1, 2, 2, 3] + [3] * 40 + [4]
    assert found([tick(index, preempted=count) for index, count in enumerate(counts)]) == [
        (AnomalyKind.PREEMPTIONS, 0.5),
        (AnomalyKind.PREEMPTIONS, 11.5),
    ]


def test_a_stall_starts_when_the_tokens_stopped() -> None:
    ticks = [tick(index, tokens=0 if 4 <= index < 20 else 5) for index in range(24)]
    assert found(ticks) == [(AnomalyKind.STALL, 1.0)]


@pytest.mark.parametrize(
    ("silence", "in_flight", "streamed"), [(8, 4, True), (30, 0, True), (30, 4, False)],
    ids=["two seconds are no stall", "nothing in flight", "no streaming"],
)  # fmt: skip
def test_no_tokens_without_requests_in_flight_is_not_a_stall(silence: int, in_flight: int, streamed: bool) -> None:
    ticks = [tick(0), *(tick(index, tokens=0, in_flight=in_flight) for index in range(1, silence + 1))]
    assert found([*ticks, tick(silence + 1)], streamed=streamed) == []


def test_waiting_for_the_first_token_of_the_run_is_not_a_stall() -> None:
    assert found([tick(index, tokens=0) for index in range(40)]) == []


def test_a_queue_that_grows_under_overload_is_reported_once() -> None:
    ticks = [tick(index, waiting=index // 2, due=5, ok=3) for index in range(160)]
    assert found(ticks) == [(AnomalyKind.QUEUE, 21.0)]


def test_a_constant_queue_after_a_burst_is_not_growing() -> None:
    ticks = [tick(index, waiting=30 if index > 20 else 0, due=5, ok=5) for index in range(160)]
    assert found(ticks) == []


def test_requests_in_flight_at_the_start_of_a_stage_are_not_a_growing_queue() -> None:
    ticks = [tick(index, in_flight=min(index, 100), due=5, ok=min(index // 20, 5)) for index in range(160)]
    assert found(ticks) == []


def test_log_errors_in_quick_succession_are_one_anomaly() -> None:
    detector = AnomalyDetector()
    detector.update_log([LogLine(at=at, text=f"ERROR 11-21 worker died at {at}") for at in (1.0, 2.0, 3.0, 30.0)])
    assert [anomaly.at for anomaly in detector.all] == [1.0, 30.0]
    assert detector.all[0].text == "ERROR 11-21 worker died at 1.0"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("ERROR 11-21 10:00:00 [core.py:1] EngineCore failed", Severity.ERROR),
        ("torch.OutOfMemoryError: CUDA out of memory", Severity.ERROR),
        ("Traceback (most recent call last):", Severity.ERROR),
        ("WARNING 11-21 preempted", Severity.WARNING),
        ("(APIServer pid=7) WARNING 11-21 ulimit not increased with error current limit", Severity.WARNING),
        ("[error] 7#7: connect() failed", Severity.ERROR),
        ("INFO: 0 errors, error_rate=0", Severity.INFO),
        ("x" * 300 + "ERROR", Severity.INFO),
    ],
)
def test_the_severity_of_a_log_line_is_its_first_level(text: str, severity: Severity) -> None:
    assert severity_of(text) is severity


def stage(number: int, rate: float, at: float) -> StageChange:
    return StageChange(at=at, index=number, label="", request_rate=rate, max_concurrency=None, max_num_seqs=64)


def test_the_knee_moves_as_stages_end() -> None:
    ttfts = [0.05, 0.05, 0.3, 6.0]
    history = TickHistory(tick(number, ttft=[value] * 5, stage=number) for number, value in enumerate(ttfts))
    detector = AnomalyDetector()
    knees: list[Anomaly | None] = []
    for number, rate in enumerate((4.0, 8.0, 16.0, 20.0)):
        detector.stage_ended(stage(number, rate, number * 0.25), until=(number + 1) * 0.25, history=history)
        knees.append(detector.knee)
    assert [each and (each.at, each.text) for each in knees] == [
        None,
        None,
        (0.25, "knee: TTFT rises beyond 8 req/s"),
        (0.5, "knee: TTFT rises beyond 16 req/s"),
    ]


readings: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {
            "tokens": st.sampled_from([0, 5]),
            "kv": st.sampled_from([None, 0.5, 0.85, 0.95]),
            "preempted": st.sampled_from([0.0, 1.0, 2.0]),
            "in_flight": st.sampled_from([0, 3]),
        }
    ),
    max_size=80,
)


@given(readings, st.integers(1, 9))
def test_anomalies_do_not_depend_on_how_ticks_are_grouped(readings: list[dict[str, Any]], step: int) -> None:
    ticks = [tick(index, **reading) for index, reading in enumerate(readings)]
    history, detector = TickHistory(), AnomalyDetector()
    for start in range(0, len(ticks), step):
        for each in ticks[start : start + step]:
            history.append(each)
        detector.update(history)
    assert [(anomaly.kind, anomaly.at) for anomaly in detector.all] == found(ticks)
