"""The verdict of one time of a run depends on the ticks up to it."""

from __future__ import annotations

import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample, StageChange
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.tui.state.judged_run import JudgedRun


def verdict_at(at: float, ticks: list[Tick], *stages: float) -> Diagnosis:
    history, judged = TickHistory(ticks), JudgedRun(streamed=True)
    changes = [
        StageChange(at=begin, index=0, label="", request_rate=20.0, max_concurrency=None, max_num_seqs=None)
        for begin in (0.0, *stages)
    ]
    judged.update(history, None, stages=changes)
    return judged.verdict(live_stats(history, at), history, facts=None, stages=changes, notes=())


def tick(index: int, *, in_flight: int = 8, waiting: int = 0, used: float = 20.0) -> Tick:
    sample = EngineSample(
        scrape_start=index / 4, scrape_end=index / 4 + 0.1, running=8, waiting=waiting, kv_blocks_used=used,
        kv_blocks_total=100,
    )  # fmt: skip
    gauges = LoadGauges(stage=0, request_rate=20.0, in_flight=in_flight)
    client = ClientTick(index=index, due=5, sent=5, ok=5, output_tokens=50, gauges=gauges)
    return Tick(client=client, engine=sample)


@pytest.mark.parametrize(("second_stage_at", "verdict"), [(29.0, Bottleneck.SETTLING), (32.0, Bottleneck.HEADROOM)])
def test_a_load_settles_while_more_requests_get_in_flight_in_one_stage(
    second_stage_at: float, verdict: Bottleneck
) -> None:
    ticks = [tick(index, in_flight=8 if index < 120 else 88) for index in range(140)]
    assert verdict_at(33.0, ticks, second_stage_at).bottleneck is verdict


@pytest.mark.parametrize(
    ("at", "usage"), [(30.0, "up to 99.0 %"), (34.0, "up to 99.0 %"), (38.0, "full before, now 5.0 %")]
)
def test_the_evidence_of_a_full_cache_is_its_peak_of_five_seconds(at: float, usage: str) -> None:
    ticks = [tick(index, waiting=9, used=99 if index < 120 and index % 4 else 5) for index in range(160)]
    assert verdict_at(at, ticks).evidence[0] == f"{usage} of blocks"


def test_a_load_that_overloaded_the_engine_has_headroom_after_a_long_calm() -> None:
    """The cache was full for 10 s: it takes 30 s without an overload until the load counts as served."""
    ticks = [tick(index, waiting=9 if 120 <= index < 160 else 0, used=99 if 120 <= index < 160 else 5)
             for index in range(400)]  # fmt: skip
    assert verdict_at(35.0, ticks).bottleneck is Bottleneck.KV
    assert verdict_at(60.0, ticks).bottleneck is Bottleneck.UNCLEAR
    assert verdict_at(95.0, ticks).bottleneck is Bottleneck.HEADROOM
    assert verdict_at(60.0, ticks, 48.0).bottleneck is Bottleneck.HEADROOM  # of another load
