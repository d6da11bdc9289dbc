"""The capacity of an engine that serves all prompts before it decodes, and what long prompts do to its rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servetop.analysis.diagnosis.capacity import (
    Capacity,
    ServiceTimes,
    prefill_capacity,
    prefill_service,
    sustainable_rate,
)
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.overload import Overload
from servetop.analysis.diagnosis.run_verdict import RunCause
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.summary.story_summary import story_summary
from servetop.core.config import WorkloadConfig
from servetop.core.events import EngineSample
from servetop.core.histogram import LogHistogram
from servetop.core.tick import ClientTick, LoadGauges, Tick
from tests.analysis.story_runs import LENGTH, story_from

CALM, QUEUED, DRAINING = 80, 80, 16
"""Ticks: 20 s without a queue, 20 s of prefill in which 240 requests join the batch, 4 s in which it decodes."""
PROMPTS = [100] * 9 + [1000]


def tick(index: int, *, first_tokens: int, output_tokens: int, ok: int, running: int, waiting: int) -> Tick:
    sample = EngineSample(
        scrape_start=index / 4, scrape_end=index / 4 + 0.2, running=running, waiting=waiting, kv_usage=0.3,
        max_num_seqs=1000,
    )  # fmt: skip
    client = ClientTick(
        index=index, due=3, sent=3, ok=ok, output_tokens=output_tokens, prompt_tokens=100 * first_tokens,
        gauges=LoadGauges(stage=0, request_rate=12.0, in_flight=running + waiting),
        ttft=LogHistogram.of([0.05] * first_tokens), ttft_due=LogHistogram.of([0.05] * first_tokens),
        itl=LogHistogram.of([0.02] * max(output_tokens - first_tokens, 0)), output_len=LogHistogram.of([LENGTH] * ok),
        input_len=LogHistogram.of(PROMPTS) if ok else LogHistogram.of([]),
    )  # fmt: skip
    return Tick(client=client, engine=sample)


def prefill_first() -> list[Tick]:
    """An engine that decodes the batch of an overload only after the queue."""
    calm = [tick(index, first_tokens=1, output_tokens=LENGTH, ok=1, running=1, waiting=0) for index in range(CALM)]
    queued = [
        tick(CALM + step, first_tokens=3, output_tokens=3, ok=0, running=1 + 3 * step, waiting=5 + step // 2)
        for step in range(QUEUED)
    ]
    draining = [
        tick(CALM + QUEUED + step, first_tokens=0, output_tokens=15 * (LENGTH - 1), ok=15, running=240 - 15 * step,
             waiting=0)
        for step in range(DRAINING)
    ]  # fmt: skip
    idle = tick(CALM + QUEUED + DRAINING, first_tokens=0, output_tokens=0, ok=0, running=0, waiting=0)
    return [*calm, *queued, *draining, idle]


def overload(*, end: float | None = 40.0) -> Overload:
    queue = Episode(kind=EpisodeKind.QUEUE, begin=20.0, detected_at=22.0, end=end, worst=45.0, worst_at=40.0)
    return Overload(episodes=(queue,))


def measured(ticks: list[Tick], *, end: float | None = 40.0) -> Capacity:
    found = prefill_capacity(overload(end=end), TickHistory(ticks), ticks[-1].end)
    assert found is not None
    return found


def test_the_capacity_includes_the_time_in_which_the_batch_of_the_overload_is_decoded() -> None:
    found = measured(prefill_first())
    assert found.rate == pytest.approx(240 / 24)
    assert not found.is_upper_bound


def test_the_batch_drains_by_the_requests_in_flight_if_the_engine_exports_none() -> None:
    ticks = [Tick(client=each.client, engine=None) for each in prefill_first()]
    found = measured(ticks)
    assert not found.is_upper_bound
    assert found.rate == pytest.approx(10, rel=0.05)


def test_a_batch_that_was_drained_after_the_last_scrape_counts_as_drained() -> None:
    ticks = prefill_first()
    stale = Tick(client=ticks[-1].client, engine=ticks[CALM + QUEUED].engine)
    assert measured([*ticks[:-1], stale]) == measured(ticks)


def test_the_capacity_is_a_bound_until_the_batch_has_drained() -> None:
    found = measured(prefill_first()[: CALM + QUEUED], end=None)
    assert found.is_upper_bound
    assert found.rate == pytest.approx(12.0)


def test_a_batch_that_grows_little_does_not_make_the_capacity_a_bound() -> None:
    steady = [
        tick(CALM + step, first_tokens=3, output_tokens=3 * LENGTH - 10, ok=3, running=10 + step // 8, waiting=5)
        for step in range(QUEUED)
    ]
    assert not measured(prefill_first()[:CALM] + steady, end=None).is_upper_bound


def test_an_overload_shorter_than_five_seconds_has_no_capacity() -> None:
    ticks = prefill_first()[: CALM + 16]
    assert prefill_capacity(overload(end=None), TickHistory(ticks), ticks[-1].end) is None


def test_the_story_claims_no_rate_above_a_bound() -> None:
    story = story_from(prefill_first()[: CALM + QUEUED], goodput={"ttft": 0.5})
    assert story.verdict.cause is RunCause.RATE
    assert story.headline.endswith("sustainable < 12 req/s (the batch has not drained)")
    summary = story_summary(story)
    assert (summary.capacity, summary.knee_rate, summary.sustainable_rate) == (None, None, None)


def test_the_prefill_of_each_prompt_is_in_proportion_to_its_length() -> None:
    ticks = prefill_first()
    times = prefill_service(TickHistory(ticks), measured(ticks), WorkloadConfig(arrivals="constant"), ticks[-1].end)
    assert times is not None
    assert times.prefills == pytest.approx([0.05, 0.5], rel=0.02)
    assert times.shares == pytest.approx([0.9, 0.1])
    spread = np.std(PROMPTS) / np.mean(PROMPTS)
    assert times.variability == pytest.approx(spread**2 / 2, rel=0.05)


@pytest.mark.parametrize(("prefill", "slower"), [(0.05, False), (0.4, True)])
def test_the_requests_with_long_prompts_have_less_time_to_wait(prefill: float, slower: bool) -> None:
    capacity = Capacity(rate=10.0, start=0.0, until=60.0, running=5.0)
    alike, unlike = (
        ServiceTimes(base=0.05, seconds=np.array([0.1]), variability=1.0, prefills=np.array([0.05, longest]),
                     shares=np.array([0.9, 0.1]))
        for longest in (0.05, prefill)
    )  # fmt: skip
    rates = [sustainable_rate(times, capacity, 0.5) for times in (alike, unlike)]
    assert (rates[1] < 0.9 * rates[0]) is slower


def test_no_rate_keeps_an_objective_that_the_prefill_of_too_many_prompts_exceeds() -> None:
    capacity = Capacity(rate=10.0, start=0.0, until=60.0, running=5.0)
    for variability in (0.0, 1.0):
        times = ServiceTimes(
            base=0.05, seconds=np.array([0.1]), variability=variability, prefills=np.array([0.05, 0.6]),
            shares=np.array([0.9, 0.1]),
        )  # fmt: skip
        assert sustainable_rate(times, capacity, 0.5) == 0.0
        assert sustainable_rate(times, capacity, 0.5, kept_share=0.5) > 5.0


def bursts(peakedness: float, variability: float) -> ServiceTimes:
    return ServiceTimes(
        base=0.05, seconds=np.full(32, 3.2), variability=variability, prefills=np.array([0.05]), shares=np.ones(1),
        peakedness=peakedness,
    )  # fmt: skip


def test_bursts_that_find_no_slot_lower_the_sustainable_rate_more_than_their_queues_do() -> None:
    capacity = Capacity(rate=10.0, start=0.0, until=60.0, running=32.0)
    random, queues, peaks = (
        sustainable_rate(times, capacity, 0.5) for times in (bursts(1.0, 1.0), bursts(1.0, 3.0), bursts(4.0, 3.0))
    )
    assert peaks < 0.8 * queues < 0.8 * random
    assert sustainable_rate(bursts(64.0, 3.0), capacity, 0.5) < 0.1, "a burst exceeds the whole batch"


@pytest.mark.parametrize(("burstiness", "lengths", "peakedness"), [(1.0, [90, 110], 1.0), (0.25, [100], 4.0)])
def test_the_peakedness_is_that_of_the_arrivals(burstiness: float, lengths: list[int], peakedness: float) -> None:
    ticks = [replace(each, client=replace(each.client, input_len=LogHistogram.of(lengths))) for each in prefill_first()]
    times = prefill_service(TickHistory(ticks), measured(ticks), WorkloadConfig(burstiness=burstiness), ticks[-1].end)
    assert times is not None
    assert times.peakedness == pytest.approx(peakedness, rel=0.01)
