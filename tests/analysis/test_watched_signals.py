"""Episodes of a watched server are found in the engine's metrics alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from servetop.analysis.diagnosis import episode_fold
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.overload import Limit, limit_at
from servetop.analysis.diagnosis.watched_signals import WATCHED_DETECTORS
from servetop.analysis.series.page_rates import WatchedHistory
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample, GpuSample
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick
from tests.watched_pages import Gauges, paged_ticks

FACTS = EngineFacts(name="vllm", title="vLLM", max_num_seqs=16)
SECONDS = 60


def ticks(*, waiting: float, kv: float = 0.3, running: float = 16.0) -> list[Tick]:
    """A server with a queue from second 20 to second 40."""
    found = []
    for index in range(int(SECONDS / TICK_SECONDS)):
        end = (index + 1) * TICK_SECONDS
        busy = 20 < end <= 40
        sample = EngineSample(
            scrape_start=end - 0.02, scrape_end=end - 0.01, running=running if busy else 4.0,
            waiting=waiting if busy else 0.0, kv_usage=kv if busy else 0.3, preemptions_total=0.0,
            generation_tokens_total=200.0 * end, prompt_tokens_total=100.0 * end, first_tokens_total=2.0 * end,
            first_token_seconds_total=0.2 * end,
        )  # fmt: skip
        found.append(Tick(client=ClientTick(index=index), engine=sample))
    return found


def kinds(*, watched: bool, **queue: float) -> set[EpisodeKind]:
    fold = EpisodeFold(watched=watched)
    assert fold.update(TickHistory(ticks(**queue)), FACTS)
    return {each.kind for each in fold.episodes}


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ({"waiting": 0.0}, set()),
        ({"waiting": 30.0}, {EpisodeKind.QUEUE, EpisodeKind.BATCH}),
        ({"waiting": 30.0, "kv": 1.0, "running": 9.0}, {EpisodeKind.QUEUE, EpisodeKind.KV}),
        ({"waiting": 30.0, "running": 9.0}, {EpisodeKind.QUEUE}),
    ],
)
def test_what_the_engine_exports_tells_its_limit(queue: dict[str, float], expected: set[EpisodeKind]) -> None:
    assert kinds(watched=True, **queue) == expected


def test_a_run_without_a_load_has_no_queue_of_its_own() -> None:
    assert EpisodeKind.QUEUE not in kinds(watched=False, waiting=30.0)


def test_a_watch_has_no_episode_of_a_client() -> None:
    assert not set(WATCHED_DETECTORS) & {
        EpisodeKind.STALL, EpisodeKind.CLIENT, EpisodeKind.AWAITING, EpisodeKind.IN_FLIGHT,
        EpisodeKind.LONG_PROMPTS,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_ticks_in_which_nothing_can_open_are_judged_like_all_others(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for part in (16, 40, 480):  # ticks judged at once
        found.append(_episodes(seed, part))
        with monkeypatch.context() as patch:
            patch.setattr(episode_fold, "may_open", lambda _signals: WATCHED_DETECTORS.keys())
            found.append(_episodes(seed, part))
    assert all(each == found[0] for each in found)


def _episodes(seed: int, part: int) -> Sequence[Episode]:
    """Calm and pressed parts of some seconds each, in random order, with gauges near the limits of the rules."""
    random, history, fold = np.random.default_rng(seed), WatchedHistory(), EpisodeFold(watched=True)
    waiting, kv, preempted, failed, gpu = 0.0, 0.3, 0.0, 0.0, GpuSample(at=0.0, index=0, name="GPU", throttled="")
    for index in range(480):
        end = (index + 1) * TICK_SECONDS
        if index % 40 == 0:
            waiting, kv = float(random.choice([0, 0, 2, 3, 40])), float(random.choice([0.3, 0.92, 1.0]))
            gpu = replace(gpu, throttled="heat" if random.random() < 0.2 else "")
        preempted += float(random.random() < 0.02)
        failed += float(random.random() < (0.2 if index % 160 > 120 else 0.01))
        sample = EngineSample(
            scrape_start=end - 0.02, scrape_end=end - 0.01, running=16.0, waiting=waiting, kv_usage=kv,
            preemptions_total=preempted, generation_tokens_total=200.0 * end, prompt_tokens_total=100.0 * end,
            first_tokens_total=2.0 * end, first_token_seconds_total=0.2 * end, requests_ended_total=2.0 * end + failed,
            requests_failed_total=failed,
        )  # fmt: skip
        history.extend([Tick(client=ClientTick(index=index), engine=sample, gpus=(gpu,))])
        if (index + 1) % part == 0:
            fold.update(history, FACTS)
    return fold.episodes


def test_the_queue_begins_and_ends_with_the_waiting_requests() -> None:
    fold = EpisodeFold(watched=True)
    fold.update(TickHistory(ticks(waiting=30.0)), FACTS)
    queue = next(each for each in fold.episodes if each.kind is EpisodeKind.QUEUE)
    assert queue.begin == pytest.approx(20, abs=1)
    assert queue.end == pytest.approx(40, abs=1)


def queue_between(begin: float, end: float) -> Gauges:
    """A full batch with a queue between two times."""
    return lambda at: {
        "running": 16.0 if begin <= at < end else 4.0, "waiting": 30.0 if begin <= at < end else 0.0, "kv_usage": 0.3,
    }  # fmt: skip


def episodes_on_pages(every: float, begin: float, end: float) -> dict[EpisodeKind, tuple[float, float | None]]:
    """Begin and end of each episode of a watch of 400 seconds."""
    fold = EpisodeFold(watched=True)
    pages = paged_ticks(every=every, seconds=400.0, gauges=queue_between(begin, end))
    fold.update(WatchedHistory(pages), FACTS)
    return {each.kind: (each.begin, each.end) for each in fold.episodes}


def test_one_page_of_a_rare_source_is_no_queue_that_lasts() -> None:
    assert episodes_on_pages(60.0, 120.0, 180.0) == {}, "the page of second 121 is the only one"
    assert set(episodes_on_pages(1.0, 120.0, 180.0)) == {EpisodeKind.QUEUE, EpisodeKind.BATCH}


def test_two_pages_of_a_rare_source_are() -> None:
    found = episodes_on_pages(60.0, 120.0, 240.0)
    assert set(found) == {EpisodeKind.QUEUE, EpisodeKind.BATCH}
    assert found[EpisodeKind.QUEUE] == pytest.approx((121, 241), abs=1), "from the first page to that without a queue"


def test_a_queue_of_a_rare_source_is_compared_with_the_throughput_of_its_interval() -> None:
    fold = EpisodeFold(watched=True)
    busy = [
        replace(tick, engine=replace(tick.engine, first_tokens_total=40.0 * tick.engine.scrape_end))
        for tick in paged_ticks(every=60.0, seconds=400.0, gauges=lambda _: {"running": 9.0, "waiting": 12.0})
        if tick.engine is not None
    ]
    fold.update(WatchedHistory(busy), FACTS)
    assert fold.episodes == (), "12 waiting requests are 0.3 s of 40 requests/s"


def test_preemptions_between_two_rare_pages_did_not_come_at_once() -> None:
    fold = EpisodeFold(watched=True)
    counted = [
        replace(tick, engine=replace(tick.engine, preemptions_total=tick.engine.scrape_end // 60 * 3))
        for tick in paged_ticks(every=60.0, seconds=400.0)
        if tick.engine is not None
    ]
    fold.update(WatchedHistory(counted), FACTS)
    assert fold.episodes == (), "three in a minute"


def swinging(*usages: float, before: float = 0.5) -> WatchedHistory:
    """A server with a queue from second 20 on, whose cache has these usages in turn, one each second."""

    def gauges(at: float) -> dict[str, float]:
        usage = usages[int(at) % len(usages)] if at > 20 else before
        return {"running": 9.0, "waiting": 30.0 if at > 20 else 0.0, "kv_usage": usage}

    return WatchedHistory(paged_ticks(every=1.0, seconds=SECONDS, gauges=gauges))


@pytest.mark.parametrize(
    ("usages", "limit"),
    [
        ((0.92, 0.97, 0.93, 0.91), Limit.KV),  # the next prompt needs more than is free after a sequence ended
        ((0.92, 0.94, 0.93, 0.91), Limit.RATE),
        ((0.70, 0.97, 0.72, 0.75), Limit.RATE),
    ],
)
def test_a_cache_that_was_full_a_moment_ago_is_full_for_the_requests_that_wait(
    usages: tuple[float, ...], limit: Limit
) -> None:
    fold, history = EpisodeFold(watched=True), swinging(*usages)
    fold.update(history, FACTS)
    assert limit_at(fold.episodes, history, FACTS, 50.0) is limit


def test_the_limit_of_now_is_that_of_the_newest_seconds() -> None:
    """Requests wait for their prefill first, and for the cache from second 40 on."""

    def gauges(at: float) -> dict[str, float]:
        return {"running": 9.0, "waiting": 30.0 if at > 10 else 0.0, "kv_usage": 1.0 if at > 40 else 0.5}

    fold, history = EpisodeFold(watched=True), WatchedHistory(paged_ticks(every=1.0, seconds=SECONDS, gauges=gauges))
    fold.update(history, FACTS)
    assert limit_at(fold.episodes, history, FACTS, 55.0) is Limit.RATE
    assert limit_at(fold.episodes, history, FACTS, 55.0, since=45.0) is Limit.KV
    assert limit_at(fold.episodes, history, FACTS, 55.0, since=56.0) is Limit.RATE, "nothing is known since"
