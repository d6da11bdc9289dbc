"""The search that a running load is handed to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from servetop.core.config import RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.events import Note, Severity
from servetop.core.interfaces.stage_row import planned_row
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.core.units import MAX_REQUEST_RATE
from servetop.run.search.handed_load import handed_load
from servetop.run.search.recorded_probes import RecordedProbes, probe_note, taken_back_note
from servetop.run.search.search_evidence import Purpose

RUN = RunConfig(goodput={"ttft": 0.5}, stages=(StageConfig(request_rate=8.0),))
OPEN, CLOSED = LoadGauges(request_rate=8.0), LoadGauges(request_rate=math.inf, max_concurrency=16)


def test_an_open_loop_is_searched_by_its_rate_around_the_present_one() -> None:
    search = handed_load(RUN, OPEN, at=12.5).search
    assert search is not None
    assert (search.over, search.low, search.high, search.prior) == ("request_rate", 0.08, 800.0, 8.0)
    assert (search.slo, search.since) == (("goodput>99%",), 12.5)


def test_a_closed_loop_is_searched_by_its_requests_in_flight() -> None:
    search = handed_load(RUN, CLOSED, at=12.5).search
    assert search is not None
    assert (search.over, search.low, search.high, search.prior) == ("max_concurrency", 1.0, 1600.0, 16.0)


def test_no_search_goes_beyond_what_a_machine_can_send() -> None:
    search = handed_load(RUN, LoadGauges(request_rate=MAX_REQUEST_RATE), at=0.0).search
    assert search is not None
    assert search.high == MAX_REQUEST_RATE


@pytest.mark.parametrize(
    ("run", "load", "why"),
    [
        (replace(RUN, goodput={}), OPEN, "start the run with --goodput"),
        (replace(RUN, drain_at_stages=True), OPEN, "is a sweep"),
        (replace(RUN, workload=WorkloadConfig(trace_rate=3.0)), OPEN, "come from its dataset"),
        (RUN, LoadGauges(), "no load to begin with"),
        (RUN, LoadGauges(request_rate=math.inf), "no load to begin with"),
    ],
)
def test_what_cannot_be_searched_says_why(run: RunConfig, load: LoadGauges, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        handed_load(run, load, at=1.0)


def ticks(until: float) -> list[Tick]:
    return [
        Tick(client=ClientTick(index=index, gauges=LoadGauges(stage=0, request_rate=4.0)))
        for index in range(round(until * 4))
    ]


def test_only_loads_that_the_search_chose_are_probes() -> None:
    stages = [
        planned_row(StageConfig(request_rate=rate), at=at, index=index)
        for index, (rate, at) in enumerate([(8.0, 0.0), (4.0, 10.0), (6.0, 20.0), (5.0, 40.0), (7.0, 50.0)])
    ]
    notes = [
        probe_note("", at=9.0, stage=1, purpose=Purpose.MEASURE),
        probe_note("", at=20.0, stage=2, purpose=Purpose.MEASURE),
        taken_back_note("taken back", at=30.0),
        Note(at=41.0, severity=Severity.INFO, source="user", text="mark"),
        probe_note("", at=50.0, stage=4, purpose=Purpose.MEASURE),
    ]
    probes = RecordedProbes(concurrency=False, since=9.0)
    probes.add(stages, notes, ticks(60.0))
    assert [(each.load, each.begin, each.end) for each in probes.until(60.0)] == [
        (4.0, 10.0, 20.0),
        (6.0, 20.0, 30.0),
        (7.0, 50.0, 60.0),
    ]
