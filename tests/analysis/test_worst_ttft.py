"""The worst ten seconds of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.worst_ttft import worst_ttft
from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick
from tests.analysis.story_runs import ramp, record_from


def _slow(*ticks: int) -> list[Tick]:
    """A minute of 12 requests/s with TTFT of 50 ms, and of 2 s in some ticks."""
    found = ramp(waiting=[0.0] * 60)
    for each in ticks:
        slow = LogHistogram.of([2.0] * 3)
        found[each] = replace(found[each], client=replace(found[each].client, ttft_due=slow))
    return found


def test_slow_requests_on_both_sides_of_a_multiple_of_ten_seconds_count_together() -> None:
    found = worst_ttft(record_from(_slow(79, 80)), 0.0, 60.0)
    assert found is not None
    assert found.seconds == pytest.approx(2.0, rel=0.02)
    assert found.at in (20.0, 20.25)


def test_the_tick_in_which_the_load_began_counts() -> None:
    found = worst_ttft(record_from(_slow(1)), 0.3, 60.0)
    assert found is not None
    assert found.seconds == pytest.approx(2.0, rel=0.02)


def test_without_a_first_token_nothing_is_worst() -> None:
    ticks = [replace(each, client=replace(each.client, ttft_due=LogHistogram.of([]))) for each in _slow()]
    assert worst_ttft(record_from(ticks), 0.0, 60.0) is None


def test_the_last_ten_seconds_end_with_the_last_first_token() -> None:
    """One slow request is 1 of the 120 of ten seconds, and 1 of 3 of the last quarter of a second."""
    times = [[0.05] * 3] * 199 + [[0.05, 0.05, 2.0]] + [[]] * 40
    ticks = [
        replace(each, client=replace(each.client, ttft=LogHistogram.of(found), ttft_due=LogHistogram.of(found)))
        for each, found in zip(_slow(), times, strict=True)
    ]
    whole = LogHistogram.of([0.05] * 119 + [2.0]).percentile(99)
    found = worst_ttft(record_from(ticks), 0.0, 60.0)
    assert found is not None
    assert found.seconds == pytest.approx(whole, rel=0.02)
    assert found.seconds < 2.0
