"""Each episode has a beginning, an end and a worst value, however the ticks are grouped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.episode_fold import LOG_QUIET, EpisodeFold
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample, LogLine, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import ClientTick, LoadGauges, Tick

RATE = 20.0
"""Requests/s of the load of `tick`, five per tick."""


def tick(
    index: int, *, tokens: int = 10, in_flight: int = 4, kv: float | None = None, preempted: float | None = None,
    waiting: float | None = 0.0, due: int = 5, ok: int = 5, failed: int = 0, late: int = 0, running: float | None = 4,
    rate: float = RATE, batch: float | None = 64, length: float = 2.0,
) -> Tick:  # fmt: skip
    sample = EngineSample(
        scrape_start=index / 4, scrape_end=index / 4, kv_usage=kv, preemptions_total=preempted, waiting=waiting,
        running=running, max_num_seqs=batch,
    )  # fmt: skip
    client = ClientTick(
        index=index, output_tokens=tokens, due=due, sent=due, ok=ok, errors=failed,
        output_len=LogHistogram.of([length] * ok),
        slip=LogHistogram.of([0.5] * late + [0.001] * (due - late)),
        gauges=LoadGauges(stage=0, in_flight=in_flight, request_rate=rate),
    )  # fmt: skip
    return Tick(client=client, engine=sample)


def found(ticks: Sequence[Tick], *, streamed: bool = True) -> Sequence[Episode]:
    fold = EpisodeFold(streamed=streamed)
    fold.update(TickHistory(ticks), None)
    return fold.episodes


def spans(episodes: Sequence[Episode]) -> list[tuple[EpisodeKind, float, float | None]]:
    return [(episode.kind, episode.begin, episode.end) for episode in episodes]


def test_usage_that_swings_while_requests_wait_is_one_episode_of_a_full_cache() -> None:
    usage = [0.5] * 8 + [1.0, 0.75, 0.8, 0.97] * 40 + [0.3] * 60
    ticks = [tick(index, kv=kv, waiting=9 if kv > 0.5 else 0) for index, kv in enumerate(usage)]
    kinds = {EpisodeKind.KV, EpisodeKind.QUEUE}
    assert {episode.kind for episode in found(ticks)} <= kinds
    (full,) = [episode for episode in found(ticks) if episode.kind is EpisodeKind.KV]
    assert (full.begin, full.end, full.worst) == (2.0, 42.0, 1.0)
    assert full.detected_at < 6
    assert full.closed_at is not None
    assert full.closed_at > 42


def test_pages_that_may_describe_an_earlier_load_open_no_episode() -> None:
    ticks = [tick(index, kv=1.0, waiting=9) for index in range(32)] + [tick(index, kv=0.1) for index in range(32, 80)]
    stages = [StageChange(at=0.0, index=0, label="", request_rate=RATE, max_concurrency=None, max_num_seqs=64)]
    for page_age, full in ((0.0, True), (10.0, False)):
        fold = EpisodeFold(streamed=True)
        facts = EngineFacts(name="ray-serve-llm", title="Ray Serve LLM", page_age=page_age)
        fold.update(TickHistory(ticks), facts, stages=stages)
        assert any(episode.kind is EpisodeKind.KV for episode in fold.episodes) == full


def test_a_full_cache_that_nothing_waits_for_is_no_episode() -> None:
    assert spans(found([tick(index, kv=0.99) for index in range(100)])) == []


def test_preemptions_are_one_episode_with_their_number_until_ten_seconds_without_any() -> None:
    counts = [0, 1, 3, 3, 4] + [4] * 40 + [5, 6, 8] + [8] * 50
    episodes = found([tick(index, preempted=count) for index, count in enumerate(counts)])
    assert spans(episodes) == [(EpisodeKind.PREEMPTIONS, 0.25, 1.25), (EpisodeKind.PREEMPTIONS, 11.25, 12.0)]
    assert [episode.total for episode in episodes] == [4, 4]


def test_a_single_preemption_in_ten_seconds_is_no_episode() -> None:
    assert found([tick(index, preempted=index // 50) for index in range(200)]) == ()


def test_a_full_batch_with_waiting_requests_begins_with_the_first_full_tick() -> None:
    ticks = [
        tick(index, running=64 if 20 <= index < 60 else 30, waiting=6 if 20 <= index < 60 else 0)
        for index in range(120)
    ]
    assert spans(found(ticks)) == [(EpisodeKind.BATCH, 5.0, 15.0)]


def test_a_full_batch_ends_when_the_batch_size_is_raised() -> None:
    ticks = [
        tick(index, running=64, waiting=6 if 20 <= index < 60 else 0, batch=64 if index < 62 else 256)
        for index in range(70)
    ]
    (full,) = found(ticks)
    assert (full.begin, full.end, full.closed_at) == (5.0, 15.0, 15.75)


def test_a_queue_begins_with_its_first_request_and_ends_when_it_is_short() -> None:
    waiting = [0] * 40 + [3 * step for step in range(60)] + [180 - 6 * step for step in range(31)] + [0] * 60
    ticks = [tick(index, waiting=count, ok=4) for index, count in enumerate(waiting)]
    (queue,) = found(ticks)
    assert queue.kind is EpisodeKind.QUEUE
    assert abs(queue.begin - 10.0) <= 0.5
    assert queue.end is not None
    assert abs(queue.end - 32.5) <= 1.0
    assert (queue.worst, queue.worst_at) == (180.0, 25.25)


def test_a_burst_of_two_seconds_is_no_episode() -> None:
    assert found([tick(index, waiting=30 if 20 <= index < 28 else 0) for index in range(160)]) == ()


def test_waiting_requests_of_a_closed_loop_are_no_growing_queue() -> None:
    assert found([tick(index, waiting=30, rate=math.inf) for index in range(160)]) == ()


def test_without_a_gauge_for_the_queue_requests_pile_up_in_flight() -> None:
    ticks = [tick(index, waiting=None, in_flight=4 + 2 * index, ok=3, length=10 / 3) for index in range(200)]
    (growing,) = found(ticks)
    assert (growing.kind, growing.end) == (EpisodeKind.IN_FLIGHT, None)
    assert spans(found([tick(index, waiting=None, in_flight=40, ok=5) for index in range(200)])) == []


def test_requests_in_flight_that_grow_with_a_ramp_are_no_overload() -> None:
    ticks = [
        tick(index, waiting=None, in_flight=4 + 2 * index, ok=3, length=10 / 3, rate=4.0 + index / 10)
        for index in range(200)
    ]
    assert found(ticks) == ()


def test_requests_in_flight_that_grow_with_a_burst_are_no_overload() -> None:
    """As many requests are due in both runs: five in each tick, or 80 at once every four seconds."""

    def growing(due: Sequence[int]) -> list[Tick]:
        return [
            tick(index, waiting=None, in_flight=4 + 2 * index, due=due[index], ok=3, length=10 / 3)
            for index in range(200)
        ]

    assert [each.kind for each in found(growing([5] * 200))] == [EpisodeKind.IN_FLIGHT]
    assert found(growing(([80] + [0] * 15) * 13)) == ()


def test_one_page_with_a_full_cache_is_no_episode() -> None:
    """A page in five seconds, of which the first or the first two show a full cache."""

    def paged(full: int) -> list[Tick]:
        ticks = []
        for index in range(160):
            page = index // 20
            kv = 1.0 if 2 <= page < 2 + full else 0.6
            sample = tick(page * 20, kv=kv, waiting=9).engine
            ticks.append(replace(tick(index), engine=sample))
        return ticks

    assert EpisodeKind.KV not in {each.kind for each in found(paged(1))}
    assert EpisodeKind.KV in {each.kind for each in found(paged(2))}


def test_failing_requests_are_counted_from_the_first_to_the_last() -> None:
    ticks = [tick(index, ok=3, failed=2 if 10 <= index < 30 else 0) for index in range(80)]
    (failing,) = found(ticks)
    assert (failing.kind, failing.begin, failing.end) == (EpisodeKind.FAILING, 2.5, 7.5)
    assert failing.total == 40


def test_one_failure_in_a_hundred_is_no_episode() -> None:
    assert found([tick(index, failed=1 if index % 20 == 0 else 0) for index in range(200)]) == ()


def test_late_requests_of_an_open_loop_are_the_clients_fault() -> None:
    (late,) = found([tick(index, late=2 if 10 <= index < 40 else 0) for index in range(100)])
    assert (late.kind, late.begin, late.end) == (EpisodeKind.CLIENT, 2.5, 10.0)
    assert found([tick(index, late=2, rate=math.inf) for index in range(100)]) == ()


def test_a_stall_starts_when_the_tokens_stopped_and_ends_with_the_next_one() -> None:
    ticks = [tick(index, tokens=0 if 4 <= index < 20 else 5, ok=0 if 4 <= index < 20 else 5) for index in range(40)]
    assert spans(found(ticks)) == [(EpisodeKind.STALL, 1.0, 5.0)]


@pytest.mark.parametrize(
    ("silence", "in_flight", "streamed"), [(8, 4, True), (30, 0, True), (30, 4, False)],
    ids=["two seconds are no stall", "nothing in flight", "no streaming"],
)  # fmt: skip
def test_no_tokens_without_requests_in_flight_is_not_a_stall(silence: int, in_flight: int, streamed: bool) -> None:
    ticks = [tick(0), *(tick(index, tokens=0, in_flight=in_flight) for index in range(1, silence + 1))]
    assert found([*ticks, tick(silence + 1)], streamed=streamed) == ()


def test_waiting_for_the_first_token_of_the_run_is_not_a_stall() -> None:
    assert found([tick(index, tokens=0, ok=0) for index in range(40)]) == ()


def test_log_errors_in_quick_succession_are_one_episode() -> None:
    fold = EpisodeFold()
    fold.update_log([LogLine(at=at, text=f"ERROR 11-21 worker died at {at}") for at in (1.0, 2.0, 3.0, 30.0)])
    fold.update(TickHistory([tick(index) for index in range(121)]), None)
    assert spans(fold.episodes) == [(EpisodeKind.ENGINE_ERROR, 1.0, 3.0), (EpisodeKind.ENGINE_ERROR, 30.0, 30.0)]
    assert fold.episodes[0].text == "ERROR 11-21 worker died at 1.0"
    assert fold.episodes[0].is_active(3.0 + LOG_QUIET - 0.1)


@pytest.mark.parametrize(("at", "counts"), [(1.0, True), (9.9, True), (10.1, False), (14.0, False), (20.1, False)])
def test_errors_that_vllm_logs_while_the_run_stops_it_are_no_episode(at: float, counts: bool) -> None:
    drained = {"rate": math.nan, "in_flight": 0, "due": 0, "ok": 0, "tokens": 0}
    restart = [tick(index, **drained) for index in range(40, 60)]  # type: ignore[arg-type]
    ticks = [*(tick(index) for index in range(40)), *restart, *(tick(index) for index in range(60, 80))]
    history, fold = TickHistory(), EpisodeFold()
    fold.update_log([LogLine(at=at, text="ERROR 11-23 [async_llm.py:906] AsyncLLM output_handler failed.")])
    for each in ticks:
        history.append(each)
        fold.update(history, None)
    assert spans(fold.episodes) == ([(EpisodeKind.ENGINE_ERROR, at, at)] if counts else [])


def test_an_end_that_is_not_confirmed_yet_is_not_known() -> None:
    (failing,) = found([tick(index, ok=3, failed=2 if 10 <= index < 30 else 0) for index in range(80)])
    assert failing.closed_at is not None
    assert failing.as_known_at(failing.closed_at - 0.25).end is None
    assert failing.as_known_at(failing.closed_at) is failing


readings: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {
            "tokens": st.sampled_from([0, 5]),
            "kv": st.sampled_from([None, 0.5, 0.85, 0.95]),
            "preempted": st.sampled_from([0.0, 1.0, 2.0]),
            "in_flight": st.sampled_from([0, 3]),
            "waiting": st.sampled_from([None, 0.0, 30.0]),
            "failed": st.sampled_from([0, 0, 0, 2]),
        }
    ),
    max_size=80,
)


@given(readings, st.integers(1, 9))
def test_episodes_do_not_depend_on_how_ticks_are_grouped(readings: list[dict[str, Any]], step: int) -> None:
    ticks = [tick(index, **reading) for index, reading in enumerate(readings)]
    history, fold = TickHistory(), EpisodeFold()
    for start in range(0, len(ticks), step):
        for each in ticks[start : start + step]:
            history.append(each)
        fold.update(history, None)
    assert [repr(each) for each in fold.episodes] == [repr(each) for each in found(ticks)]


def test_a_restart_with_another_batch_size_does_not_change_the_batch_that_was_full_before() -> None:
    facts = EngineFacts(name="vllm", title="vLLM", max_num_seqs=32)  # of the engine that runs last
    stages = [
        StageChange(at=at, index=index, label="", request_rate=RATE, max_concurrency=None, max_num_seqs=size)
        for index, (at, size) in enumerate([(0.0, 4), (30.0, 32)])
    ]
    ticks = [tick(index, waiting=9.0, batch=None) for index in range(240)]
    fold = EpisodeFold()
    fold.update(TickHistory(ticks), facts, stages=stages)
    (full,) = [episode for episode in fold.episodes if episode.kind is EpisodeKind.BATCH]
    assert (full.batch, full.begin, full.end) == (4.0, 0.0, 30.0)


@pytest.mark.parametrize(("running", "fits"), [(4.0, 3), (12.0, 8), (40.0, 32)])
def test_a_cache_that_holds_few_sequences_has_an_advised_batch_size_too(running: float, fits: int) -> None:
    ticks = [tick(index, kv=1.0, waiting=9.0, running=running) for index in range(40)]
    assert {each.fits for each in found(ticks) if each.kind is EpisodeKind.KV} == {fits}


def test_the_advised_batch_size_is_that_of_one_of_several_replicas() -> None:
    facts = EngineFacts(name="vllm", title="vLLM", max_num_seqs=16, replica_urls=("http://a", "http://b"))
    ticks = [tick(index, kv=1.0, waiting=9.0, running=24.0, batch=None) for index in range(40)]
    fold = EpisodeFold()
    fold.update(TickHistory(ticks), facts)
    assert {(each.fits, each.batch) for each in fold.episodes if each.kind is EpisodeKind.KV} == {(8, 16.0)}


def test_many_ticks_are_judged_bit_by_bit() -> None:
    history, fold = TickHistory([tick(index, preempted=float(index)) for index in range(100)]), EpisodeFold()
    assert not fold.update(history, None, most=60)
    assert fold.judged == 60
    assert fold.update(history, None, most=60)
    assert [repr(each) for each in fold.episodes] == [repr(each) for each in found(history.ticks[:])]
