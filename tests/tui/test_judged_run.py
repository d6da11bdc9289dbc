"""The verdict of one time of a run depends on the ticks up to it."""

from __future__ import annotations

import pytest

from servetop.analysis.judgement.diagnosis import Bottleneck
from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample, StageChange
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.tui.state.judged_run import JudgedRun


@pytest.mark.parametrize(("second_stage_at", "verdict"), [(29.0, Bottleneck.SETTLING), (32.0, Bottleneck.HEADROOM)])
def test_a_load_settles_while_more_requests_get_in_flight_in_one_stage(
    second_stage_at: float, verdict: Bottleneck
) -> None:
    ticks = []
    for index in range(140):
        sample = EngineSample(scrape_start=index / 4, scrape_end=index / 4 + 0.1, running=8, waiting=0, kv_usage=0.2)
        gauges = LoadGauges(stage=0, request_rate=20.0, in_flight=8 if index < 120 else 88)
        client = ClientTick(index=index, due=5, sent=5, ok=5, output_tokens=50, gauges=gauges)
        ticks.append(Tick(client=client, engine=sample))
    history, judged = TickHistory(ticks), JudgedRun(streamed=True)
    stages = [
        StageChange(at=at, index=0, label="", request_rate=20.0, max_concurrency=None, max_num_seqs=None)
        for at in (0.0, second_stage_at)
    ]
    judged.update(history, None, stages=stages)
    found = judged.verdict(live_stats(history, 33.0), history, facts=None, stages=stages, notes=())
    assert found.bottleneck is verdict
