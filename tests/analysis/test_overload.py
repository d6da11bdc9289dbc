"""Overloads have one onset and one limit, which does not change with random arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.overload import Limit, Overload, limit_at, limit_of, named_at
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import EngineSample
from servetop.core.tick import ClientTick, Tick


def episode(kind: EpisodeKind, begin: float, end: float | None = None, **changes: Any) -> Episode:
    figures: dict[str, Any] = {"detected_at": begin + 1, "worst": 1.0, "worst_at": begin}
    return Episode(kind=kind, begin=begin, end=end, **figures | changes)


def history(due: Sequence[int], *, waiting: float = 9, kv: float = 0.5) -> TickHistory:
    """One tick for each number of requests due, with the same gauges in all."""
    sample = EngineSample(scrape_start=0, scrape_end=0, running=8, waiting=waiting, kv_usage=kv)
    return TickHistory(
        [Tick(client=ClientTick(index=index, due=count), engine=sample) for index, count in enumerate(due)]
    )


LONG = episode(EpisodeKind.LONG_PROMPTS, 60.0)
FULL = episode(EpisodeKind.KV, 61.0, level=0.95)
QUEUE = episode(EpisodeKind.QUEUE, 60.0)
CALM = [4] * 240
"""A minute of 16 requests/s."""


@pytest.mark.parametrize(("seconds", "limit"), [(1.5, Limit.LONG_PROMPTS), (20, Limit.KV)])
def test_long_prompts_explain_an_overload_unless_requests_come_significantly_faster(
    seconds: float, limit: Limit
) -> None:
    run = history([*CALM, *[6] * round(4 * seconds)], kv=1.0)
    assert limit_of(Overload(episodes=(LONG, QUEUE, FULL)), run, None, until=60 + seconds) is limit


def test_long_prompts_alone_fill_neither_the_cache_nor_the_batch() -> None:
    run = history([*CALM, *[8] * 80], waiting=0)
    assert limit_of(Overload(episodes=(LONG,)), run, None, until=80) is Limit.LONG_PROMPTS


def test_free_blocks_before_the_pages_stopped_are_not_those_of_the_overload() -> None:
    pages = [EngineSample(scrape_start=0, scrape_end=at, running=8 - at, waiting=9, kv_usage=0.5) for at in (0, 4)]
    seen = [Tick(client=ClientTick(index=index), engine=pages[index > 0]) for index in range(40)]
    unseen = [Tick(client=ClientTick(index=index)) for index in range(40, 84)]
    queue = Overload(episodes=(episode(EpisodeKind.QUEUE, 0.0),))
    assert limit_of(queue, TickHistory(seen), None, until=10.0) is Limit.RATE
    assert limit_of(queue, TickHistory([*seen, *unseen]), None, until=21.0) is Limit.UNKNOWN


def test_an_overload_begins_with_its_first_queue_that_is_no_burst() -> None:
    burst, first = episode(EpisodeKind.QUEUE, 10, 14), episode(EpisodeKind.QUEUE, 20, 30)
    longest = episode(EpisodeKind.QUEUE, 40, 90)
    assert Overload(episodes=(FULL, burst, first, longest)).onset == 20
    assert Overload(episodes=(FULL, burst)).onset == 10
    assert Overload(episodes=(FULL,)).onset == 61


def test_an_overload_is_named_once_its_limit_was_known() -> None:
    full = episode(EpisodeKind.KV, 61.0, level=0.95, detected_at=64.0)
    run = history([4] * 300, kv=1.0)
    assert limit_at((QUEUE, full), run, None, 61.0) is Limit.UNKNOWN
    assert limit_at((QUEUE, full), run, None, 60.5) is None
    assert named_at((QUEUE, full), Overload(episodes=(QUEUE, full)), run, None) == 64.0
