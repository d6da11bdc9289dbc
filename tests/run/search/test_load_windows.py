"""What a load showed: without the transition, with events of missed samples, and whether its queue rises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servetop.run.search.load_windows import Trend, in_flight, in_flight_at, merged, windows
from servetop.run.search.search_evidence import Probe, Purpose
from tests.run.search.made_evidence import Kept, evidence_of


def test_probes_of_one_load_are_one_window() -> None:
    evidence = evidence_of(Kept(4.0, 10.0), Kept(4.0, 5.0), Kept(8.0, 5.0))
    assert [(each.load, each.end - each.begin) for each in merged(evidence.probes)] == [(4.0, 15.0), (8.0, 5.0)]


def test_a_recovery_and_a_confirmation_are_no_windows() -> None:
    evidence = evidence_of(
        Kept(4.0, 10.0), Kept(2.0, 5.0, purpose=Purpose.RECOVER), Kept(4.0, 5.0, purpose=Purpose.CONFIRM)
    )
    assert [each.load for each in windows(evidence, 0)] == [4.0]


def test_a_window_counts_what_missed_the_limit_and_how_it_came_together() -> None:
    (window,) = windows(evidence_of(Kept(2.0, 60.0, missed=0.05)), 0)
    assert window.share == pytest.approx(0.05, abs=0.01)
    assert set(window.events) == {1.0}  # one each ten seconds
    (crowded,) = windows(evidence_of(Kept(40.0, 10.0, missed=0.5)), 0)
    assert len(crowded.events) == 1


def test_requests_in_flight_follow_from_due_and_done() -> None:
    evidence = evidence_of(Kept(10.0, 20.0, latency=2.0))
    assert in_flight(evidence, np.array([0.05, 10.05])).tolist() == [1.0, 20.0]
    assert in_flight_at(evidence, 10.05) == 20.0


def test_the_transition_from_the_load_before_is_left_out() -> None:
    _, window = windows(evidence_of(Kept(5.0, 20.0, latency=4.0), Kept(40.0, 20.0, latency=4.0)), 0)
    assert window.seconds < 18.0
    assert window.in_flight == pytest.approx(160.0, rel=0.05)


@pytest.mark.parametrize(("growth", "trend"), [(0.0, Trend.SETTLED), (0.3, Trend.RISING)])
def test_a_queue_that_grows_is_told_from_one_that_has_settled(growth: float, trend: Trend) -> None:
    (window,) = windows(evidence_of(Kept(20.0, 60.0, growth=growth)), 0)
    assert window.trend is trend


def test_a_load_without_a_single_request_shows_nothing() -> None:
    (window,) = windows(evidence_of(Kept(0.01, 8.0)), 0)
    assert (window.counted, window.missed, window.trend) == (0.0, 0.0, Trend.SETTLED)


def test_equal_loads_before_and_after_a_restart_are_two() -> None:
    first, second = Probe(load=4.0, begin=0.0, end=5.0), Probe(load=4.0, begin=5.0, end=9.0)
    assert merged([first, second]) == [Probe(load=4.0, begin=0.0, end=9.0)]
    assert len(merged([first, replace(second, restarts=1)])) == 2
