"""Whether requests still wait at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.core.tick import Tick
from tests.analysis.story_runs import QUEUE, ramp, story_from

STILL = "requests still wait at the end of the run"


def ending(*, in_flight: int = 0, queued: int = 0, cancelled: int = 0) -> list[Tick]:
    """A run whose newest page shows a queue, with so many requests in its last tick."""
    ticks = ramp(waiting=QUEUE[:50])
    last = ticks[-1].client
    gauges = replace(last.gauges, in_flight=in_flight, queued=queued)
    return [*ticks[:-1], replace(ticks[-1], client=replace(last, gauges=gauges, cancelled=cancelled))]


@pytest.mark.parametrize("left", [{"in_flight": 9}, {"queued": 2}, {"cancelled": 5}])
def test_requests_without_an_answer_still_wait(left: dict[str, int]) -> None:
    assert STILL in [line.text for line in story_from(ending(**left)).lines]


def test_after_the_last_answer_nothing_waits_whatever_an_old_page_shows() -> None:
    assert STILL not in [line.text for line in story_from(ending()).lines]
