"""What a load showed: without the transition, with events of missed samples, and whether its queue rises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servetop.run.search.load_windows import Trend, in_flight, in_flight_at, merged, windows
from servetop.run.search.search_evidence import Evidence, Probe, Purpose
from tests.judgement.curve_server import Curve, CurveServer
from tests.run.search.made_evidence import Kept, evidence_of
from tests.run.search.open_loops import without_queue

OPEN = windows(without_queue(), 0)


def closed_loop(*loads: float) -> tuple[list[Probe], Evidence]:
    """Loads that are kept for 30 s each on a server whose latencies rise with them."""
    curve = Curve(
        kind="linear", limit=1.0, share=0.9, largest=40.3, concurrency=True, spread=0.15, start=0.4, bend=0.0
    )  # fmt: skip
    server = CurveServer(curve, noise=0.0, seed=3)
    probes = [server.keep(load, 30.0) for load in loads]
    return probes, server.evidence(probes, [curve.objective])


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


def test_requests_that_are_sent_at_once_as_a_closed_loop_rises_do_not_count() -> None:
    _, evidence = closed_loop(10.0, 40.0)
    counted = windows(evidence, 0, concurrency=True)[1]
    all_of_them = windows(evidence, 0)[1]
    assert all_of_them.begin == 30.0
    assert counted.begin == pytest.approx(30.0 + counted.latency, rel=0.05)
    assert counted.counted < all_of_them.counted - 30
    assert counted.in_flight == all_of_them.in_flight


@pytest.mark.parametrize(("seconds", "counts"), [(40.0, False), (80.0, True)])
def test_a_closed_loop_in_which_nothing_ends_counts_after_a_minute(seconds: float, *, counts: bool) -> None:
    (window,) = windows(evidence_of(Kept(10.0, seconds, latency=500.0)), 0, concurrency=True)
    assert (window.counted > 0) is counts


def test_latencies_of_requests_that_the_next_load_serves_too_are_left_out() -> None:
    probes, evidence = closed_loop(10.0, 20.0)
    for probe, window in zip(probes, windows(evidence, 0, concurrency=True), strict=True):
        assert window.samples is not None
        left_out = bool(probe.end - window.samples.due.max() > window.latency)
        assert left_out is (probe is probes[0])


def test_short_requests_that_were_due_too_late_to_miss_do_not_count_in_a_closed_loop() -> None:
    base = evidence_of(Kept(10.0, 20.0, latency=1.0), Kept(10.0, 30.0, latency=1.0))
    evidence = replace(base, levels=(np.zeros(500),), limits=(5.0,), decided=(5.0,))
    probes = [replace(each, load=load) for each, load in zip(base.probes, (10.0, 12.0), strict=True)]
    open_loop, closed = (windows(evidence, 0, probes=probes, concurrency=concurrency) for concurrency in (False, True))
    for window, all_of_them in zip(closed, open_loop, strict=True):
        assert all_of_them.known == all_of_them.counted == window.known + 10 * (window.begin - all_of_them.begin)
        assert window.counted == window.known - 50


def test_independent_latencies_show_no_correlation_and_an_open_loop_none_at_all() -> None:
    _, evidence = closed_loop(10.0, 40.0)
    (first, second), (open_loop, _) = windows(evidence, 0, concurrency=True), windows(evidence, 0)
    assert open_loop.correlation is None
    assert first.correlation is not None
    assert second.correlation is not None
    assert abs(second.correlation.correlation) < 0.2


def test_an_open_loop_shows_how_latencies_depend_on_what_is_in_flight_and_a_closed_one_does_not() -> None:
    assert all(each.memory is not None for each in OPEN)
    assert all(each.memory is None for each in windows(without_queue(), 0, concurrency=True))


def test_only_requests_that_were_due_long_before_the_end_tell_of_a_queue() -> None:
    for window in OPEN:
        assert window.memory is not None
        assert 0.9 * window.counted < window.memory.requests < window.counted


def test_a_load_without_a_single_request_shows_nothing() -> None:
    (window,) = windows(evidence_of(Kept(0.01, 8.0)), 0)
    assert (window.counted, window.missed, window.trend) == (0.0, 0.0, Trend.SETTLED)


def test_equal_loads_before_and_after_a_restart_are_two() -> None:
    first, second = Probe(load=4.0, begin=0.0, end=5.0), Probe(load=4.0, begin=5.0, end=9.0)
    assert merged([first, second]) == [Probe(load=4.0, begin=0.0, end=9.0)]
    assert len(merged([first, replace(second, restarts=1)])) == 2
