"""When a queue ended, and whether requests still wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.overload import Overload, overloads
from servetop.analysis.diagnosis.recovery import few_wait_after, queue_end, still_waits
from servetop.core.histogram import EMPTY
from servetop.core.tick import Tick
from tests.analysis.story_runs import QUEUE, ramp, record_from, story_from


def _end(waiting: list[float]) -> float | None:
    run = record_from(ramp(waiting=waiting))
    return queue_end(run, overloads(run.episodes)[0])


def test_a_queue_ends_with_its_last_few_requests() -> None:
    busy = [*[0.0] * 20, *[30.0] * 10]
    assert _end([*busy, *[3.0] * 4, *[0.0] * 20]) == 34.0
    assert _end([*busy, *[0.0] * 20]) == 30.0


def test_a_short_queue_soon_after_it_belongs_to_it() -> None:
    busy = [*[0.0] * 20, *[30.0] * 10]
    assert _end([*busy, *[0.0] * 3, 9.0, 9.0, *[0.0] * 20]) == 35.0
    assert _end([*busy, *[0.0] * 8, 9.0, 9.0, *[0.0] * 20]) == 30.0


def test_a_queue_at_the_newest_page_has_no_end() -> None:
    assert _end([*[0.0] * 20, *[30.0] * 10]) is None


def _left(ticks: list[Tick], in_flight: int) -> list[Tick]:
    """The run with so many requests in flight in its last tick."""
    last = ticks[-1].client
    return [*ticks[:-1], replace(ticks[-1], client=replace(last, gauges=replace(last.gauges, in_flight=in_flight)))]


def test_requests_that_were_all_served_do_not_wait_whatever_an_old_page_says() -> None:
    ticks = ramp(waiting=QUEUE[:50])
    assert still_waits(record_from(_left(ticks, 9)))
    assert not still_waits(record_from(_left(ticks, 0)))
    for left, said in ((9, True), (0, False)):
        texts = [line.text for line in story_from(_left(ticks, left)).lines]
        assert ("requests still wait at the end of the run" in texts) is said


def test_a_queue_that_the_end_of_the_run_gave_up_did_not_end() -> None:
    ticks = ramp(waiting=[*QUEUE[:50], *[0.0] * 5])
    for cancelled, said in ((0, True), (9, False)):
        ticks[200] = replace(ticks[200], client=replace(ticks[200].client, cancelled=cancelled))
        texts = " ".join(line.text for line in story_from(ticks).lines)
        assert ("nothing waits any more" in texts) is said


@pytest.mark.parametrize(
    ("again", "seconds", "few"), [(0, 0.0, True), (30, 0.5, True), (30, 2.0, False), (8, 5.0, True)]
)
def test_few_requests_wait_after_an_overload_if_a_quarter_of_the_most_do_for_more_than_a_moment(
    again: int, seconds: float, *, few: bool
) -> None:
    """After it, which ended at 30 s, `again` requests wait for their first token from 31 s on."""
    ticks = []
    for tick in ramp(waiting=[0.0] * 40):  # no request ever has one
        waiting = again if 31.0 <= tick.start < 31.0 + seconds else 0
        gauges = replace(tick.client.gauges, in_flight=waiting)
        ticks.append(replace(tick, client=replace(tick.client, ttft=EMPTY, gauges=gauges)))
    most = Episode(kind=EpisodeKind.AWAITING, begin=20.0, detected_at=22.0, end=30.0, worst=40.0, worst_at=25.0)
    assert few_wait_after(record_from(ticks), Overload(episodes=(most,)), 30.0) is few
