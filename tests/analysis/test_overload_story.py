"""When an overload began, where its signs come and go, and what a short queue tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.overload_story import began_before
from servetop.analysis.diagnosis.run_verdict import RunCause
from servetop.core.histogram import LogHistogram
from tests.analysis.story_runs import QUEUE, SLOTS, ramp, record_from, story_from


@pytest.mark.parametrize(("early", "since"), [(0.0, "from"), (2.0, "from"), (3.0, "by")])
def test_an_overload_after_earlier_signs_has_begun_by_its_onset(early: float, since: str) -> None:
    ticks = ramp(waiting=[0.0] * 2 + [early] + [0.0] * 20 + list(QUEUE[5:-5]), kv=0.9, running=SLOTS)
    assert f" {since} 0:" in story_from(ticks, goodput={"ttft": 0.5}).headline


def test_where_waiting_is_unknown_an_early_miss_is_a_sign() -> None:
    ticks = ramp(waiting=[0.0] * 25, running=SLOTS)
    run = record_from(ticks, goodput={"ttft": 0.5})
    unseen = [tick if tick.engine is None else replace(tick, engine=None) for tick in ticks]
    late = replace(unseen[8], client=replace(unseen[8].client, ttft_due=LogHistogram.of([0.9])))
    assert not began_before(run, 20.0)
    assert not began_before(record_from(unseen, goodput={"ttft": 0.5}), 20.0)
    assert began_before(record_from([*unseen[:8], late, *unseen[9:]], goodput={"ttft": 0.5}), 20.0)
    assert not began_before(record_from([*unseen[:8], late, *unseen[9:]], goodput={"ttft": 0.5}), 10.0)


def test_a_queue_that_hardly_grows_tells_no_rate() -> None:
    story = story_from(ramp(waiting=QUEUE))
    assert story.verdict.cause is RunCause.RATE
    assert story.lines[-1].text == "try a lower rate or more replicas"
