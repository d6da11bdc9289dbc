"""What is said of an engine with few or old pages, without metrics, or with a cold cache: no more than was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.diagnosis import clauses
from servetop.analysis.diagnosis.observation import Observation
from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.story.story import story_of
from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick
from tests.analysis.story_runs import QUEUE, facts_without, ramp, record_from, story_from


def sparse(ticks: list[Tick], *, every: int = 20) -> list[Tick]:
    """The run with a page every five seconds."""
    return [replace(tick, engine=ticks[every * (index // every)].engine) for index, tick in enumerate(ticks)]


def texts(ticks: list[Tick], **settings: object) -> str:
    story = story_from(ticks, **settings)
    return "; ".join([story.headline, *(line.text for line in story.lines)])


def test_an_overload_seen_at_few_pages_has_a_latest_begin_and_a_least_number_of_preemptions() -> None:
    often, rarely = texts(ramp(waiting=QUEUE, kv=0.99)), texts(sparse(ramp(waiting=QUEUE, kv=0.99)))
    assert " from 0:" in often
    assert "at least" not in often
    assert " by 0:" in rarely
    assert "at least" in rarely
    assert "nothing waits any more" not in rarely


def test_few_pages_show_a_queue_at_the_scrapes_only() -> None:
    calm = ramp(waiting=[0.0] * 40)
    assert "no queue, no failure" in texts(calm)
    assert "no queue at the scrapes, no failure" in texts(sparse(calm))


def with_usage(ticks: list[Tick], usage: float) -> list[Tick]:
    """The run with this KV usage on every page."""
    pages = [None if each.engine is None else replace(each.engine, kv_usage=usage) for each in ticks]
    return [replace(each, engine=page) for each, page in zip(ticks, pages, strict=True)]


def test_pages_of_an_engine_at_rest_are_no_peak() -> None:
    calm = ramp(waiting=[0.0] * 40)
    assert "KV blocks at most 30% in use" in texts(calm)
    assert "KV blocks at most 30% in use at the scrapes" in texts(sparse(calm))
    assert "KV blocks" not in texts(with_usage(calm, 0.0))


def closed(waiting: list[float]) -> list[Tick]:
    """The run as a closed loop."""
    found = ramp(waiting=waiting)
    load = [replace(each.client.gauges, request_rate=float("inf")) for each in found]
    return [replace(each, client=replace(each.client, gauges=gauges)) for each, gauges in zip(found, load, strict=True)]


def test_a_run_whose_cold_start_missed_the_objectives_needs_more_time_not_more_load() -> None:
    def advice(ticks: list[Tick], *, limit: int | None = None) -> str:
        planned = record_from(ticks).stages
        stages = tuple(replace(each, request_rate=float("inf"), max_concurrency=limit) for each in planned)
        story = story_from(ticks, goodput={"ttft": 0.5}, stages=stages)
        assert story.headline.startswith("headroom")
        return story.lines[-1].text

    cold = [8.0, 20.0, 30.0, 20.0, 10.0]
    assert advice(closed([*cold, *[0.0] * 30])) == "try a longer run at this load"
    assert advice(closed([*cold, *[0.0] * 300])) == "try more requests at once"
    assert advice(closed([*cold, *[0.0] * 300]), limit=8) == "try a higher concurrency"


def test_a_queue_of_a_closed_loop_may_have_lasted() -> None:
    burst, long = ([*[0.0] * 20, *[9.0] * seconds, *[0.0] * 20] for seconds in (2, 8))
    assert "no queue that lasted, at most 9 waiting" in texts(closed(burst))
    assert "no queue that lasted" not in texts(closed(long))
    assert "at most 9 waiting" in texts(closed(long))
    for pause, lasted in ((1, True), (2, False)):
        often = [*[0.0] * 20, *([9.0] * 3 + [0.0] * pause) * 4, *[0.0] * 20]
        assert ("no queue that lasted" not in texts(closed(often))) is lasted


def test_a_server_without_metrics_may_be_overloaded_or_its_network() -> None:
    silent = [replace(tick, engine=None) for tick in ramp(waiting=QUEUE)]
    for index in range(80, 200):  # of three requests one begins
        begun = LogHistogram.of([2.0])
        silent[index] = replace(
            silent[index], client=replace(silent[index].client, ttft=begun, ttft_due=begun, prompt_tokens=100)
        )
    own = record_from(silent, facts=facts_without({Observation.BATCH_LIMIT, Observation.KV}))
    config = own.header.config
    attached = replace(config, engine=replace(config.engine, url="http://gpu:8000"))
    other = replace(own, header=replace(own.header, config=attached))
    assert story_of(own, run_verdict(own)).headline.startswith("overloaded from")
    story = story_of(other, run_verdict(other))
    assert story.headline.startswith("engine or network overloaded from")
    assert story.lines[-1].text == clauses.TRY_METRICS.example


@pytest.mark.parametrize(("slow", "advice"), [(range(70), "try a longer run"), (range(144), "try a lower rate")])
def test_objectives_that_the_second_half_kept_need_a_longer_run(slow: range, advice: str) -> None:
    ticks = ramp(waiting=[0.0] * 36)
    late = LogHistogram.of([2.0] * 3)
    for index in slow:
        ticks[index] = replace(ticks[index], client=replace(ticks[index].client, ttft=late, ttft_due=late))
    story = story_from(ticks, goodput={"ttft": 0.5})
    assert story.headline.startswith("objectives missed")
    assert story.lines[-1].text.startswith(advice)


def test_a_queue_that_is_there_from_the_start_does_not_grow() -> None:
    assert "the queue grows, to 38 requests" in texts(ramp(waiting=[2.0 * second for second in range(20)]))
    steady = texts(ramp(waiting=[30.0] * 20))
    assert "at most 30 waiting" in steady
    assert "the queue grows" not in steady


def test_a_few_failures_without_a_time_of_failing_are_named() -> None:
    ticks = ramp(waiting=[0.0] * 20)
    for index in (20, 60):
        ticks[index] = replace(ticks[index], client=replace(ticks[index].client, ok=2, errors=1))
    run = record_from(ticks)
    assert run.episodes == ()
    assert story_of(run, run_verdict(run)).headline.startswith("headroom")
    for index in (40, 79):
        ticks[index] = replace(ticks[index], client=replace(ticks[index].client, ok=2, errors=1))
    story = story_from(ticks)
    assert story.headline.startswith("failing: 4 of 240 requests failed")
    assert "requests fail" in [line.text for line in story.lines]


def busy_server(*, preempted: float) -> list[Tick]:
    """An overload whose pages stop for 9 s after its first seconds, with free KV blocks in those that came."""
    ticks = [
        replace(tick, engine=None) if 96 <= index < 132 else tick for index, tick in enumerate(ramp(waiting=QUEUE))
    ]
    for index in range(132, len(ticks)):
        sample = ticks[index].engine
        assert sample is not None
        ticks[index] = replace(ticks[index], engine=replace(sample, preemptions_total=preempted))
    return ticks[:140]


def test_preemptions_between_two_pages_filled_the_cache_there() -> None:
    free, full = texts(busy_server(preempted=0.0)), texts(busy_server(preempted=300.0))
    assert free.startswith("rate above capacity")
    assert full.startswith("KV-bound")
    assert "free KV blocks" not in full
    assert "first preemption seen; 300 in all, up to 30.0/s" in full


def unanswered(*, preempted: float) -> list[Tick]:
    """An overload of 30 s, of which every third request begins, with one page before it and those after it."""
    ticks = ramp(waiting=QUEUE)
    for index in range(80, 200):
        client = replace(
            ticks[index].client, ttft=LogHistogram.of([2.0]), ttft_due=LogHistogram.of([2.0]), prompt_tokens=100
        )
        ticks[index] = replace(ticks[index], client=client, engine=None)
    for index in range(200, len(ticks)):
        sample = ticks[index].engine
        assert sample is not None
        ticks[index] = replace(ticks[index], engine=replace(sample, preemptions_total=preempted))
    return ticks


def test_an_overload_between_two_pages_is_seen_by_the_client() -> None:
    free, full = texts(unanswered(preempted=0.0)), texts(unanswered(preempted=300.0))
    assert free.startswith("overloaded")
    assert full.startswith("KV-bound")
    assert "300 in all" in full
    for text in (free, full):
        assert "requests without a first token" in text
        assert "free KV blocks" not in text


def test_a_network_that_holds_requests_limits_only_a_run_that_misses_its_objectives() -> None:
    def attached(ticks: list[Tick], **goodput: float) -> str:
        run = record_from(ticks, goodput=goodput)
        config = replace(run.header.config, engine=replace(run.header.config.engine, url="http://gpu:8000"))
        run = replace(run, header=replace(run.header, config=config))
        return run_verdict(run).cause

    elsewhere = [
        replace(tick, client=replace(tick.client, gauges=replace(tick.client.gauges, in_flight=100)))
        for tick in ramp(waiting=[0.0] * 40)
    ]
    assert attached(elsewhere) == "network-bound"
    assert attached(elsewhere, ttft=0.01) == "network-bound"
    assert attached(elsewhere, ttft=0.5) == "headroom"
    assert attached([replace(tick, engine=None) if index > 8 else tick for index, tick in enumerate(elsewhere)]) != (
        "network-bound"
    )


@pytest.mark.parametrize(("first", "cold"), [(2.0, True), (0.05, False)])
def test_a_start_is_cold_only_if_its_very_first_requests_are_slow(first: float, *, cold: bool) -> None:
    """The requests of eight seconds are late, or all of them but those of the first second."""
    ticks = ramp(waiting=[0.0] * 60)
    for index in range(32):
        late = LogHistogram.of([first if index < 4 else 2.0] * 3)
        ticks[index] = replace(ticks[index], client=replace(ticks[index].client, ttft=late, ttft_due=late))
    verdict = run_verdict(record_from(ticks, goodput={"ttft": 0.5}))
    assert (verdict.cold_until is not None) is cold


def test_requests_that_were_given_up_missed_their_objectives() -> None:
    ticks = [replace(each, client=replace(each.client, good=2, good_due=2)) for each in ramp(waiting=[0.0] * 30)]
    last = ticks[-1].client
    ticks[-1] = replace(ticks[-1], client=replace(last, cancelled=360))
    text = texts(ticks, goodput={"ttft": 0.5})
    assert "only 33% of the requests had TTFT ≤ 500 ms" in text
