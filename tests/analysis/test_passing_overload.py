"""Overloads that do not decide the verdict of a run."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.overload import Overload, overloads
from servetop.analysis.diagnosis.passing_overload import (
    follows_stalls,
    is_long,
    length,
    lies_between,
    passed,
    stalls_apart_from,
)
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, run_verdict
from servetop.analysis.story.story import story_of
from servetop.core.events import GpuSample
from servetop.core.histogram import EMPTY, LogHistogram
from servetop.core.tick import Tick
from tests.analysis.story_runs import LENGTH, ramp, record_from

CALM = [0.0] * 60
START = [20.0] * 6
"""A queue of the first seconds."""


def _seen(ticks: list[Tick], **changes: float) -> tuple[RunRecord, Overload]:
    last = ticks[-1].client
    served = replace(ticks[-1], client=replace(last, gauges=replace(last.gauges, in_flight=0)))
    run = record_from([*ticks[:-1], served], goodput={"ttft": changes.get("ttft", 0.5)})
    return run, overloads(run.episodes)[0]


def test_a_queue_of_the_start_passes_if_the_same_load_is_then_served() -> None:
    run, main = _seen(ramp(waiting=[*START, *CALM]))
    assert passed(run, main, [])
    assert not passed(run, main, [main])
    assert run_verdict(run).cause is not RunCause.RATE


def test_a_queue_that_comes_later_does_not_pass() -> None:
    run, main = _seen(ramp(waiting=[*CALM, *START, *[0.0] * 30]))
    assert not passed(run, main, [])
    assert run_verdict(run).cause is RunCause.RATE


@pytest.mark.parametrize(("ttft", "harmless"), [(0.5, False), (5.0, True)])
def test_a_wait_within_the_objective_does_no_harm(ttft: float, *, harmless: bool) -> None:
    run, main = _seen(ramp(waiting=[*CALM, *START, *[0.0] * 30]), ttft=ttft)
    assert passed(run, main, []) is harmless


def test_a_full_cache_within_the_objectives_is_told_without_blame() -> None:
    run, main = _seen(ramp(waiting=[*CALM, *START, *[0.0] * 30], kv=0.99), ttft=5.0)
    assert passed(run, main, [])
    verdict = run_verdict(run)
    assert (verdict.cause, verdict.passed, verdict.sustainable) == (RunCause.UNCLEAR, main, None)
    texts = [each.text for each in story_of(run, verdict).lines]
    assert any("an overload of 6.0 s passed within the objectives" in each for each in texts)
    no_objective = record_from(list(run.history.ticks), goodput={})
    assert not passed(no_objective, overloads(no_objective.episodes)[0], [])


@pytest.mark.parametrize(("elsewhere", "decides"), [(0, True), (60, False)])
def test_an_overload_decides_if_the_misses_of_the_run_are_its_own(elsewhere: int, *, decides: bool) -> None:
    """All requests miss the objective while six seconds long some wait, and none or all in the minute before."""
    ticks = [
        replace(each, client=replace(each.client, good=3 * kept, good_due=3 * kept))
        for index, each in enumerate(ramp(waiting=[*[0.0] * 60, *START, *[0.0] * 30]))
        for kept in [not (60 - elsewhere <= index // 4 < 66)]
    ]
    run, main = _seen(ticks)
    assert passed(run, main, []) is not decides
    assert run_verdict(run).cause is (RunCause.RATE if decides else RunCause.MISSED)


@pytest.mark.parametrize(("after", "harmless"), [(60, True), (8, False)])
def test_a_growth_of_the_requests_in_flight_passes_if_the_load_lasts(after: int, *, harmless: bool) -> None:
    """For 30 s two of three requests end, without a queue; then as many as arrive, or the load ends."""
    ticks, level = [], 8
    for tick in ramp(waiting=[0.0] * (40 + 30 + after)):
        ended = 2 if 40.0 <= tick.start < 70.0 else 3
        level += 3 - ended
        gauges = replace(tick.client.gauges, in_flight=level)
        ticks.append(replace(tick, client=replace(tick.client, ok=ended, output_tokens=LENGTH * ended, gauges=gauges)))
    run, main = _seen(ticks)
    assert [each.kind for each in main.episodes] == [EpisodeKind.IN_FLIGHT]
    assert passed(run, main, []) is harmless
    assert (run_verdict(run).cause is RunCause.UNCLEAR) is harmless


@pytest.mark.parametrize(("after", "harmless"), [(60, True), (25, False)])
def test_a_growth_that_ended_long_before_the_load_was_no_rate_above_capacity(after: int, *, harmless: bool) -> None:
    """Whatever the objectives: as many end as arrive, for longer than the 35 s in which the requests in flight grew."""
    ticks, level = [], 8
    for tick in ramp(waiting=[0.0] * (40 + 30 + after)):
        ended = 2 if 40.0 <= tick.start < 70.0 else 3
        level += 3 - ended
        gauges = replace(tick.client.gauges, in_flight=level)
        ticks.append(replace(tick, client=replace(tick.client, ok=ended, output_tokens=LENGTH * ended, gauges=gauges)))
    run, main = _seen(ticks, ttft=0.01)
    assert passed(run, main, []) is harmless
    assert run_verdict(run).cause is (RunCause.MISSED if harmless else RunCause.RATE)


def test_a_queue_between_repeated_pauses_is_theirs() -> None:
    pauses = [(20.0, 22.5), (50.0, 52.5)]
    run, main = _seen(_paused([*[0.0] * 33, *[20.0] * 6, *[0.0] * 40], *pauses))
    assert lies_between(run, main, stalls_apart_from(run, main))
    assert run_verdict(run).cause is RunCause.STALL


def test_an_overload_of_one_page_may_be_shorter_than_its_pages() -> None:
    ticks = ramp(waiting=[*[0.0] * 31, *[20.0] * 6, *[0.0] * 31])
    run, main = _seen(ticks)
    assert is_long(run, main, loaded=68.0)
    pages = [ticks[20 * (index // 20)].engine for index in range(len(ticks))]
    sparse = record_from([replace(tick, engine=page) for tick, page in zip(ticks, pages, strict=True)])
    assert sparse.page_gap == pytest.approx(5.0)
    assert sparse.sees_little
    (seen,) = overloads(sparse.episodes)
    assert length(sparse, seen) == 5.0
    assert not is_long(sparse, seen, loaded=68.0)


def test_a_silence_in_a_queue_is_no_stall() -> None:
    ticks = ramp(waiting=[*[0.0] * 30, *[20.0] * 10, *[0.0] * 30])
    silent = [
        replace(tick, client=replace(tick.client, output_tokens=0)) if 33 <= tick.end < 37 else tick for tick in ticks
    ]
    run, main = _seen(silent)
    assert [each.begin for each in stalls_apart_from(run, None)] == [32.75]
    assert stalls_apart_from(run, main) == []


def _without_tokens(*, decoding: int, exports: bool, url: str | None) -> RunRecord:
    """A run without tokens from 30 s to 33 s, while `decoding` requests that had a first token are in flight."""
    ticks, in_flight = [], 0
    for tick in ramp(waiting=CALM):
        silent = 30.0 <= tick.start < 33.0
        in_flight = in_flight + 3 if silent else 0
        client = replace(tick.client, gauges=replace(tick.client.gauges, in_flight=in_flight + decoding))
        if silent:
            client = replace(client, ok=0, output_tokens=0, prompt_tokens=0, ttft=EMPTY, ttft_due=EMPTY)
        ticks.append(Tick(client=client, engine=tick.engine if exports else None))
    run = record_from(ticks)
    config = run.header.config
    attached = replace(config, engine=replace(config.engine, url=url))
    return replace(run, header=replace(run.header, config=attached))


@pytest.mark.parametrize(
    ("decoding", "exports", "url", "stalls"),
    [(0, False, "http://gpu-1:8000", 0), (4, False, "http://gpu-1:8000", 1), (0, True, "http://gpu-1:8000", 1),
     (0, False, None, 1)],
    ids=["all wait", "some had tokens", "the queue is known", "no other clients"],
)  # fmt: skip
def test_requests_that_all_wait_at_a_server_without_a_queue_are_not_known_to_be_paused(
    decoding: int, *, exports: bool, url: str | None, stalls: int
) -> None:
    run = _without_tokens(decoding=decoding, exports=exports, url=url)
    assert len(run.of_kind(EpisodeKind.STALL)) == 1
    assert len(stalls_apart_from(run, None)) == stalls


def _paused(waiting: list[float], *silences: tuple[float, float], rise: float = 1.0) -> list[Tick]:
    """A run of `ramp` without tokens in these periods, and with a rate that is `rise` times as high from 30 s on."""
    ticks = []
    for tick in ramp(waiting=waiting):
        client = tick.client
        if any(start <= tick.start < end for start, end in silences):
            client = replace(client, output_tokens=0)
        if tick.start >= 30.0:
            client = replace(client, gauges=replace(client.gauges, request_rate=12.0 * rise))
        ticks.append(replace(tick, client=client))
    return ticks


@pytest.mark.parametrize(
    ("queued", "silences", "rise", "follows"),
    [
        (9, [(30.0, 32.5)], 1.0, True),
        (9, [(30.0, 32.5)], 1.5, False),
        (20, [(30.0, 32.5)], 1.0, False),
        (9, [(36.0, 39.0)], 1.0, False),
        (9, [(20.0, 22.5)], 1.0, False),
        (20, [(30.0, 32.5), (40.0, 42.5)], 1.0, True),
        (20, [(30.0 + 2.75 * n, 32.5 + 2.75 * n) for n in range(8)], 1.0, False),
    ],
    ids=["made up", "at a higher rate", "lasts", "before the pause", "long after it", "two pauses", "hardly a token"],
)
def test_a_queue_after_a_pause_is_what_the_engine_makes_up_for(
    queued: int, silences: list[tuple[float, float]], rise: float, *, follows: bool
) -> None:
    run, main = _seen(_paused([*[0.0] * 33, *[20.0] * queued, *[0.0] * 40], *silences, rise=rise))
    assert follows_stalls(run, main) is follows
    assert (run_verdict(run).cause is RunCause.STALL) is follows


def test_a_short_pause_counts_if_requests_miss_their_objectives() -> None:
    pauses = [(float(at), at + 1.5) for at in range(20, 60, 10)]
    for ttft, stalls in ((0.04, 4), (0.5, 0)):
        ticks = [replace(each, client=replace(each.client, prompt_tokens=30)) for each in _paused(CALM, *pauses)]
        run = record_from(ticks, goodput={"ttft": ttft})
        assert len(stalls_apart_from(run, None)) == stalls


@pytest.mark.parametrize(("pauses", "cause"), [(2, RunCause.STALL), (1, RunCause.RATE), (0, RunCause.RATE)])
def test_a_queue_that_grows_in_several_pauses_only_is_theirs(pauses: int, cause: RunCause) -> None:
    """The queue of 40 s grows in two seconds at its begin and at its middle, and shrinks to half of that after each."""
    begins, awaiting, ticks = [30.0, 50.0][:pauses], 0, []
    for tick in ramp(waiting=[*[0.0] * 30, *[30.0] * 40]):
        silent = any(begin <= tick.start < begin + 2.5 for begin in begins)
        started = 0 if silent else min(awaiting + 3, 3 + (tick.client.index % 4 == 0))
        awaiting += 3 - started
        wait = LogHistogram.of([0.05 if tick.start < 30.0 else 1.0] * started)
        client = replace(tick.client, output_tokens=0 if silent else 150, ttft=wait, ttft_due=wait)
        ticks.append(replace(tick, client=client))
    run = record_from(ticks, goodput={"ttft": 0.5})
    assert run_verdict(run).cause is cause


@pytest.mark.parametrize(("since", "found"), [(math.inf, 4), (15.0, 0)], ids=["full clocks", "throttled"])
def test_pauses_of_a_throttled_gpu_may_be_its_slower_prefills(since: float, found: int) -> None:
    pauses = [(float(at), at + 2.5) for at in range(20, 60, 10)]
    gpu = GpuSample(at=0.0, index=0, name="GPU", throttled="power cap")
    ticks = [replace(each, gpus=(gpu,) if each.start >= since else ()) for each in _paused(CALM, *pauses)]
    assert len(stalls_apart_from(record_from(ticks, goodput={"ttft": 0.5}), None)) == found
