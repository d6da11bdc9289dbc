"""A watched server fails requests by its own counters, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.verdict_now import verdict_now
from servetop.analysis.live_stats import watched_stats
from servetop.analysis.series.page_rates import WatchedHistory
from servetop.core.interfaces.run_source import EngineFacts
from tests.watched_pages import Gauges, paged_ticks, serving

FACTS = EngineFacts(name="vllm", title="vLLM", max_num_seqs=16)
Counted = Callable[[float], tuple[float, float] | None]
"""The requests that ended and those that failed up to a time; None where the engine counts neither."""


def history(counted: Counted, *, every: float = 1.0, seconds: float = 60.0, gauges: Gauges = serving) -> WatchedHistory:
    def page(at: float) -> dict[str, float]:
        found = counted(at)
        known = {} if found is None else {"requests_ended_total": found[0], "requests_failed_total": found[1]}
        return {**gauges(at), **known}

    return WatchedHistory(paged_ticks(every=every, seconds=seconds, gauges=page))


def episodes(counted: Counted, *, every: float = 1.0, seconds: float = 60.0) -> list[Episode]:
    fold = EpisodeFold(watched=True)
    fold.update(history(counted, every=every, seconds=seconds), FACTS)
    return list(fold.episodes)


def failing(rate: float, *, begin: float = 20.0, end: float = 40.0, ended: float = 4.0) -> Counted:
    """Failures per second between two times, of all requests that end; whole numbers, as counters have."""
    return lambda at: (ended * at // 1, rate * (min(max(at, begin), end) - begin) // 1)


def test_a_server_that_fails_requests_is_said_to_from_the_first_to_the_last_of_them() -> None:
    (found,) = episodes(failing(2.0))
    assert found.kind is EpisodeKind.FAILING
    assert (found.begin, found.end) == pytest.approx((20.75, 40.25), abs=1)
    assert found.detected_at == pytest.approx(22.0, abs=1), "three of them, without a second page"
    assert found.total == 40.0
    assert found.worst == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("counted", "why"),
    [
        (failing(0.0), "what clients abort or send wrong ends, and does not fail"),
        (failing(2.0, ended=50.0), "4 % of the requests"),
        (failing(0.2), "two in ten seconds may be random"),
        (lambda _: None, "the engine counts no failures"),
        (lambda at: (1000 + 4 * at, 900.0), "they failed before the watch"),
        (lambda at: (4 * at + 500, 90.0) if at < 30 else (4 * (at - 30), 0.0), "a restart is none"),
    ],
)
def test_no_episode_of_failures(counted: Counted, why: str) -> None:
    assert episodes(counted) == [], why


def test_what_a_restarted_server_fails_counts_from_0() -> None:
    (found,) = episodes(lambda at: (4 * at + 500, 90.0) if at < 30 else (4 * (at - 30) // 1, 2 * (at - 30) // 1))
    assert found.begin == pytest.approx(31, abs=1)
    assert found.end is None
    assert found.total <= 60


def test_the_first_failure_of_a_server_whose_counter_appears_with_it_counts() -> None:
    (found,) = episodes(lambda at: (0.0, 0.0) if at < 30 else (40.0, 40.0))
    assert found.total == 40.0


@pytest.mark.parametrize(("end", "count"), [(90.0, 0), (180.0, 1)])
def test_a_rare_source_shows_failures_on_two_pages(end: float, count: int) -> None:
    found = episodes(failing(2.0, begin=61.0, end=end), every=30.0, seconds=400.0)
    assert [each.kind for each in found] == [EpisodeKind.FAILING] * count
    assert all(each.end is not None and each.end < 250 for each in found)


def verdict(gauges: Gauges, counted: Counted, at: float) -> tuple[Bottleneck, str]:
    known = history(counted, gauges=gauges)
    fold = EpisodeFold(watched=True)
    fold.update(known, FACTS)
    lasting = tuple(each for each in fold.episodes if each.is_active(at))
    moment = Moment(stats=watched_stats(known, at), facts=FACTS, watched=True, episodes=lasting)
    found = verdict_now(moment)
    return found.bottleneck, found.line


def test_a_server_that_fails_all_and_runs_nothing_is_not_idle() -> None:
    def nothing(at: float) -> dict[str, float]:
        return serving(at) | {"running": 0.0, "kv_usage": 0.0}

    def all_fail(at: float) -> tuple[float, float]:
        return 4 * at // 1, 4 * (max(at, 20.0) - 20) // 1

    assert verdict(nothing, all_fail, 15.0)[0] is Bottleneck.IDLE
    found, line = verdict(nothing, all_fail, 45.0)
    assert found is Bottleneck.FAILING
    assert line == "failing: 100% of requests, 0 running, 0 waiting, KV 0.0 % → look at the server's log"


def test_the_verdict_is_that_of_the_metrics_once_no_request_fails_any_more() -> None:
    assert verdict(serving, failing(2.0), 35.0)[0] is Bottleneck.FAILING
    assert verdict(serving, failing(2.0), 50.0)[0] is Bottleneck.SERVING


def test_the_share_is_not_known_without_requests_and_without_counters() -> None:
    silent, unknown = history(lambda _: (7.0, 3.0)), history(lambda _: None)
    shares = [watched_stats(each, 40.0).rates.engine_failed_share for each in (silent, unknown)]
    assert all(share != share for share in shares)
    assert watched_stats(history(failing(2.0)), 35.0).rates.engine_failed_share == pytest.approx(0.5, abs=0.05)


def test_ticks_are_judged_alike_however_they_are_grouped() -> None:
    ticks = [history(failing(2.0)).ticks[index] for index in range(240)]
    found = []
    for part in (1, 40, 240):
        fold, known = EpisodeFold(watched=True), WatchedHistory()
        for start in range(0, 240, part):
            known.extend(ticks[start : start + part])
            fold.update(known, replace(FACTS))
        found.append(fold.episodes)
    assert found[0] == found[1] == found[2] != ()
