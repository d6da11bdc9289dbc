"""Which loads a run shows to be sustained, near what the engine holds and below it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.kept_load import given_up, hidden_misses, kept_rate
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.story.story import story_of
from servetop.core.config import StageConfig
from servetop.core.config_values.search_config import SearchConfig
from servetop.core.tick import Tick
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.analysis.test_run_verdict import LIGHT, record_of, with_objectives
from tests.judgement.observed import without_metrics
from tests.simulator.virtual_run.runs import plan_of


def steady_run() -> VirtualRun:
    plan = plan_of(StageConfig(request_rate=8.0, duration=60.0), workload=replace(LIGHT, burstiness=100.0))
    return run_virtually(with_objectives(plan, ttft=0.5))


def with_sample(tick: Tick, **values: float) -> Tick:
    return tick if tick.engine is None else replace(tick, engine=replace(tick.engine, **values))


@pytest.mark.parametrize(("waiting", "kv_usage", "kept"), [(2.0, 1.0, False), (2.0, 0.3, True), (0.0, 1.0, True)])
def test_a_load_for_which_requests_wait_at_a_full_cache_is_no_bound(
    waiting: float, kv_usage: float, kept: bool
) -> None:
    run = steady_run()
    ticks = [
        with_sample(tick, waiting=waiting, kv_usage=kv_usage) if 40 < tick.end < 41 else tick for tick in run.ticks
    ]
    assert (kept_rate(record_of(replace(run, ticks=tuple(ticks))), at=50.0) is not None) is kept


def test_a_load_that_misses_its_objectives_for_a_moment_is_no_bound() -> None:
    run = steady_run()
    assert kept_rate(record_of(run), at=50.0) == pytest.approx(8.0, rel=0.1)
    late = [
        replace(tick, client=replace(tick.client, good_due=0)) if 40 < tick.end < 41 else tick for tick in run.ticks
    ]
    assert kept_rate(record_of(replace(run, ticks=tuple(late))), at=50.0) is None


@pytest.mark.parametrize(("missed", "rate", "kept"), [(0, 3.0, True), (1, 3.0, False), (1, 30.0, True)])
def test_a_missed_objective_asks_for_more_requests(missed: int, rate: float, *, kept: bool) -> None:
    """The capacity may be near, and the work of some 180 requests that come at random is known within 7 %."""
    plan = plan_of(StageConfig(request_rate=rate, duration=60.0), workload=LIGHT, kv_blocks=20_000)
    run = run_virtually(with_objectives(plan, ttft=5.0))
    last = max(number for number, tick in enumerate(run.ticks[:180]) if tick.client.good_due)
    client = run.ticks[last].client
    late = replace(run.ticks[last], client=replace(client, good_due=(client.good_due or 0) - missed))
    record = record_of(replace(run, ticks=(*run.ticks[:last], late, *run.ticks[last + 1 :])))
    assert (kept_rate(record, at=50.0) is not None) is kept


@pytest.mark.parametrize(("above", "kept"), [(1.02, False), (1.3, True)])
def test_a_load_whose_tpot_is_near_its_objective_is_no_bound(above: float, *, kept: bool) -> None:
    run = record_of(steady_run())
    slowest = run.history.histogram("tpot", start=0, stop=len(run.history)).percentile(99)
    config = replace(run.header.config, goodput={"ttft": 0.5, "tpot": above * slowest})
    judged = replace(run, header=replace(run.header, config=config))
    assert (kept_rate(judged, at=50.0) is not None) is kept


@pytest.mark.parametrize(("misses", "hidden", "cause"), [(0, False, "headroom"), (12, False, "headroom"),
    (12, True, "unclear"), (2, True, "headroom")])  # fmt: skip
def test_requests_that_missed_the_objectives_may_be_those_of_a_queue_that_is_not_seen(
    misses: int, *, hidden: bool, cause: str
) -> None:
    """Of the 480 requests, one in each of some seconds."""
    run, left, ticks = steady_run(), misses, []
    for tick in run.ticks:
        late = bool(left and tick.client.good_due and tick.client.index % 8 == 0)
        left -= late
        ticks.append(replace(tick, client=replace(tick.client, good_due=(tick.client.good_due or 0) - late)))
    seen = replace(run, ticks=tuple(ticks))
    verdict = run_verdict(told := record_of(without_metrics(seen) if hidden else seen))
    assert verdict.cause == cause
    assert hidden_misses(told, told.load_since) == pytest.approx(misses / 480 if cause == "unclear" else 0.0, rel=0.05)
    lines = " ".join(line.text for line in story_of(told, verdict).lines)
    text = "whether the engine keeps up is unknown: its queue is not known, and 2% of the requests missed"
    assert (text in lines) is (cause == "unclear")


def as_search(run: RunRecord) -> RunRecord:
    search = SearchConfig(slo=("ttft<500ms@90%",), low=1.0, high=100.0)
    return replace(run, header=replace(run.header, config=replace(run.header.config, search=search)))


def test_a_search_claims_no_rate_beside_its_answer() -> None:
    kept = record_of(steady_run())
    assert kept_rate(kept, at=50.0) is not None
    assert kept_rate(as_search(kept), at=50.0) is None
    plan = plan_of(StageConfig(request_rate=40.0, duration=60.0), workload=LIGHT, max_num_seqs=4)
    overloaded = record_of(run_virtually(with_objectives(plan, ttft=0.5)))
    found, searched = run_verdict(overloaded), run_verdict(as_search(overloaded))
    assert found.sustainable is not None
    assert (searched.cause, searched.sustainable, searched.knee) == (found.cause, None, None)


@pytest.mark.parametrize(("share", "gave"), [(0.0, True), (0.1, False)])
def test_a_closed_loop_may_give_up_requests_at_its_end(share: float, *, gave: bool) -> None:
    run = steady_run()
    last = run.ticks[-1]
    ticks = (*run.ticks[:-1], replace(last, client=replace(last.client, cancelled=3)))
    workload = replace(run.header.config.workload, cancel_fraction=share)
    header = replace(run.header, config=replace(run.header.config, workload=workload))
    closed = tuple(replace(each, request_rate=math.inf) for each in run.stages)
    closed_run = record_of(replace(run, ticks=ticks, stages=closed, header=header))
    assert bool(given_up(closed_run, closed_run.load_since)) is gave
    assert not given_up(record_of(run), 0.0)
