"""Which rates are claimed of an overload: those of engines like the ones whose errors are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.capacity import Capacity
from servetop.analysis.diagnosis.claimed_rates import ClaimedRates, claimed_rates
from servetop.analysis.diagnosis.overload import Limit, overloads
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.histogram import LogHistogram
from tests.analysis.story_runs import FACTS, QUEUE, ramp, record_from

PAIR = replace(FACTS, replica_urls=("http://gpu-1:8000", "http://gpu-2:8000"))


def overloaded() -> RunRecord:
    """A run at 12 requests/s, of which 8 complete while others wait."""
    ticks = [
        replace(each, client=replace(each.client, ok=2)) if each.engine is not None and each.engine.waiting else each
        for each in ramp(waiting=QUEUE)
    ]
    return record_from(ticks, goodput={"ttft": 0.5})


def claimed(run: RunRecord, limit: Limit, *, running: float) -> ClaimedRates:
    (main,) = overloads(run.episodes)
    return claimed_rates(limit, Capacity(rate=11.5, start=main.begin, until=50.0, running=running), main, run)


@pytest.mark.parametrize(
    ("limit", "running", "known"),
    [(Limit.KV, 7.0, False), (Limit.KV, 9.0, True), (Limit.RATE, 250.0, True), (Limit.RATE, 260.0, False)],
)
def test_no_rate_is_claimed_of_fewer_or_more_sequences_than_those_with_known_errors(
    limit: Limit, running: float, *, known: bool
) -> None:
    found = claimed(overloaded(), limit, running=running)
    assert (found.sustainable is not None, found.knee is not None) == (known, known)


def test_each_of_two_replicas_may_run_as_many() -> None:
    run = overloaded()
    pair = replace(run, header=replace(run.header, engine=PAIR))
    assert claimed(pair, Limit.RATE, running=500.0).sustainable is not None
    assert claimed(pair, Limit.RATE, running=520.0) == ClaimedRates()


def with_prompts(run: RunRecord, lengths: list[float], *, ttft: float = 0.05) -> RunRecord:
    """The same requests with prompts of these lengths; the first 25 seconds have this TTFT."""
    ticks = [
        replace(
            tick,
            client=replace(
                tick.client,
                input_len=LogHistogram.of(lengths),
                ttft=LogHistogram.of([ttft] * 3) if tick.end <= 25.0 else tick.client.ttft,
            ),
        )
        for tick in run.history.ticks
    ]
    return replace(run, history=TickHistory(ticks))


@pytest.mark.parametrize(("ttft", "known"), [(0.05, True), (0.2, False)])
def test_no_rate_is_claimed_if_requests_waited_before_the_overload(ttft: float, *, known: bool) -> None:
    run = with_prompts(overloaded(), [100.0] * 3, ttft=ttft)
    assert (claimed(run, Limit.BATCH, running=20.0).sustainable is not None) is known


@pytest.mark.parametrize(("longest", "known"), [(300.0, True), (1500.0, False)])
def test_no_rate_is_kept_if_the_longest_prompts_miss_the_objective_alone(longest: float, *, known: bool) -> None:
    """The median prompt takes 50 ms, so one that is fifteen times as long takes more than 500 ms."""
    found = claimed(with_prompts(overloaded(), [100.0, 100.0, longest]), Limit.BATCH, running=20.0)
    assert (found.sustainable is not None) is known
    assert found.knee is not None
