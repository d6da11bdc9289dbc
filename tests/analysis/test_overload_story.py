"""What a short queue tells."""

from __future__ import annotations

from servetop.analysis.diagnosis.run_verdict import RunCause
from tests.analysis.story_runs import QUEUE, ramp, story_from


def test_a_queue_that_hardly_grows_tells_no_rate() -> None:
    story = story_from(ramp(waiting=QUEUE))
    assert story.verdict.cause is RunCause.RATE
    assert story.lines[-1].text == "try a lower rate or more replicas"
