"""Which rates of an overload have an interval, and what the run itself proves about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.diagnosis.claimed_rates import ClaimedRates
from servetop.analysis.diagnosis.overload import overloads
from servetop.analysis.diagnosis.overload_intervals import RateEvidence, evidence, missed_rate, overload_intervals
from servetop.analysis.diagnosis.rate_factors import KNEE, SUSTAINABLE
from servetop.analysis.diagnosis.rate_interval import nearly_certain
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.story.story import story_of
from servetop.analysis.summary.story_summary import story_summary
from tests.analysis.story_runs import QUEUE, SLOTS, ramp, record_from

TTFT = {"ttft": 0.5}
RATES = ClaimedRates(sustainable=10.0, knee=11.0)


def overloaded(goodput: dict[str, float] | None = None) -> RunRecord:
    """A run at 12 requests/s whose KV cache is full for 30 s; every request then misses the objective."""
    return record_from(ramp(waiting=QUEUE, kv=0.99, running=SLOTS), goodput=TTFT if goodput is None else goodput)


def intervals(run: RunRecord, rates: ClaimedRates = RATES) -> tuple[object, object]:
    (main,) = overloads(run.episodes)
    found = overload_intervals(rates, main, run)
    return found.sustainable, found.knee


def test_each_rate_has_the_factors_of_its_evidence() -> None:
    low, high = SUSTAINABLE[RateEvidence.LITTLE]
    assert intervals(overloaded(), replace(RATES, sustainable=5.0))[0] == (5 * low, 5 * high)
    low, high = KNEE[RateEvidence.LITTLE]
    assert intervals(overloaded())[1] == (11 * low, 11 * high)


def with_workload(run: RunRecord, **workload: Any) -> RunRecord:
    config = run.header.config
    changed = replace(config, workload=replace(config.workload, **workload))
    return replace(run, header=replace(run.header, config=changed))


def evidence_of(run: RunRecord) -> RateEvidence:
    return evidence(overloads(run.episodes)[0], run)


def test_the_work_of_many_requests_or_of_regular_ones_is_known() -> None:
    run = overloaded()
    assert evidence_of(run) is RateEvidence.LITTLE  # 360 requests: 1 / √360 is 5.3 %
    assert evidence_of(with_workload(run, arrivals="constant")) is RateEvidence.MUCH
    longer = record_from(ramp(waiting=[*QUEUE[:50], *[120.0] * 20, *[0.0] * 20], kv=0.99, running=SLOTS), goodput=TTFT)
    assert evidence_of(longer) is RateEvidence.MUCH


def test_bursty_arrivals_are_evidence_of_their_own() -> None:
    run = overloaded()
    assert evidence_of(with_workload(run, burstiness=0.3)) is RateEvidence.BURSTY
    assert evidence_of(with_workload(run, burstiness=0.6)) is not RateEvidence.BURSTY
    low, high = KNEE[RateEvidence.BURSTY]
    assert intervals(with_workload(run, burstiness=0.3))[1] == (11 * low, 11 * high)


def test_a_lower_bound_has_no_interval() -> None:
    assert intervals(overloaded(), replace(RATES, is_lower_bound=True)) == (None, None)


@pytest.mark.parametrize("goodput", [{}, {"tpot": 0.05}, {"ttft": 0.5, "e2el": 9.0}])
def test_the_rate_of_other_objectives_has_no_interval_since_its_errors_are_unknown(goodput: dict[str, float]) -> None:
    sustainable, knee = intervals(overloaded(goodput))
    assert sustainable is None
    assert knee is not None


def test_an_interval_ends_at_the_constant_rate_that_was_missed() -> None:
    run = overloaded()
    (main,) = overloads(run.episodes)
    assert missed_rate(main, run) == 12.0
    assert intervals(run, replace(RATES, sustainable=11.9))[0] == (11.9 * SUSTAINABLE[RateEvidence.LITTLE][0], 12.0)


def test_a_rate_that_was_served_for_longer_afterwards_is_not_missed() -> None:
    ticks = ramp(waiting=[*QUEUE, *[0.0] * 20], kv=0.99, running=SLOTS)
    run = record_from(ticks, goodput=TTFT)
    (main,) = overloads(run.episodes)
    assert missed_rate(main, run) is None
    assert missed_rate(main, record_from(ticks[:-80], goodput=TTFT)) == 12.0


def test_a_short_overload_or_a_changing_rate_proves_nothing() -> None:
    short = record_from(ramp(waiting=[*QUEUE[:30], *[0.0] * 20], kv=0.99, running=SLOTS), goodput=TTFT)
    assert missed_rate(overloads(short.episodes)[0], short) is None
    ticks = ramp(waiting=QUEUE, kv=0.99, running=SLOTS)
    gauges = [replace(each.client.gauges, request_rate=8.0 + index / 40) for index, each in enumerate(ticks)]
    rising = [
        replace(tick, client=replace(tick.client, gauges=gauge)) for tick, gauge in zip(ticks, gauges, strict=True)
    ]
    run = record_from(rising, goodput=TTFT)
    assert missed_rate(overloads(run.episodes)[0], run) is None


def test_a_constant_rate_whose_objective_was_kept_is_not_missed() -> None:
    run = overloaded({"ttft": 60.0})
    assert missed_rate(overloads(run.episodes)[0], run) is None


def test_the_story_and_its_summary_have_the_interval_of_the_verdict() -> None:
    run = overloaded()
    verdict = run_verdict(run)
    story = story_of(run, verdict)
    assert verdict.sustainable_interval is not None
    assert verdict.sustainable_range is not None
    (low, high), (least, most) = verdict.sustainable_interval, verdict.sustainable_range
    assert least < low < high <= most
    assert f"sustainable {least:.3g} to {most:.3g} req/s with TTFT ≤ 500 ms" in story.headline  # too wide for ≈
    summary = story_summary(story)
    assert (summary.sustainable_rate_interval, summary.knee_interval) == ((low, high), verdict.knee_interval)


def test_a_range_told_alone_is_that_of_99_in_100() -> None:
    low, high = nearly_certain((0.8, 1.25))
    assert low == pytest.approx(1 / high)
    assert low == pytest.approx(0.8 ** (2.576 / 1.645))
