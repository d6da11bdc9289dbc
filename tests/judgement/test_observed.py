"""What an observer records of an engine that exports less, or later."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servetop.core.config import StageConfig
from servetop.core.events import EngineSample
from servetop.core.tick import TICK_SECONDS
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.judgement.observed import OBSERVATIONS, engine_samples, observations_of
from tests.simulator.virtual_run.runs import plan_of

LOAD = StageConfig(request_rate=8.0, duration=12.0)
ENGINE = {
    "no max_num_seqs": ("max_num_seqs",),
    "no waiting": ("waiting", "queue_seconds_total", "queued_requests_total"),
    "no KV": ("kv_blocks_used", "kv_blocks_total", "kv_usage", "preemptions_total"),
}


@pytest.fixture(scope="module")
def run() -> VirtualRun:
    return run_virtually(plan_of(LOAD, max_num_seqs=4))


@pytest.fixture(scope="module")
def pair() -> VirtualRun:
    return run_virtually(plan_of(LOAD, plan={"replicas": 2}, max_num_seqs=4))


def _samples(run: VirtualRun) -> list[EngineSample]:
    return engine_samples(run.ticks)


@pytest.mark.parametrize("name", list(ENGINE))
def test_fields_are_missing_in_every_sample_and_all_others_are_kept(run: VirtualRun, name: str) -> None:
    seen = OBSERVATIONS[name](run)
    for before, after in zip(_samples(run), _samples(seen), strict=True):
        changed = {field for field in EngineSample.__slots__ if getattr(before, field) != getattr(after, field)}
        assert changed <= set(ENGINE[name])
        assert all(getattr(after, field) is None for field in ENGINE[name])
    assert seen.header.engine is not None
    assert set(seen.header.engine.not_exported) == set(ENGINE[name])


def test_the_limits_of_the_engine_are_not_known_from_its_start_either(run: VirtualRun) -> None:
    for name, field in (
        ("no max_num_seqs", "max_num_seqs"),
        ("no KV", "kv_blocks_total"),
        ("no metrics", "block_size"),
    ):
        assert getattr(run.header.engine, field) is not None
        assert getattr(OBSERVATIONS[name](run).header.engine, field) is None


@pytest.mark.parametrize("name", list(OBSERVATIONS))
def test_the_client_sees_the_same(pair: VirtualRun, name: str) -> None:
    seen = OBSERVATIONS[name](pair)
    assert seen.records == pair.records
    assert [tick.client for tick in seen.ticks] == [tick.client for tick in pair.ticks]
    assert seen.replica_admissions == pair.replica_admissions


@pytest.mark.parametrize(("name", "period"), [("1 Hz", 1.0), ("0.2 Hz", 5.0)])
def test_a_page_stays_the_newest_until_the_next_scrape(run: VirtualRun, name: str, period: float) -> None:
    seen = OBSERVATIONS[name](run)
    starts = np.array([sample.scrape_start for sample in _samples(seen)])
    assert np.abs(np.diff(starts) - period).max() <= TICK_SECONDS
    ages = [tick.end - tick.engine.scrape_start for tick in seen.ticks if tick.engine]
    assert period - 2 * TICK_SECONDS < max(ages) - min(ages) <= period
    assert {id(each) for each in _samples(seen)} <= {id(each) for each in _samples(run)}


def test_late_pages_are_scraped_on_time_and_tell_the_past(run: VirtualRun) -> None:
    seen = OBSERVATIONS["late pages"](run)
    then, late = ({tick.end: tick.engine for tick in each.ticks if tick.engine} for each in (run, seen))
    assert seen.header.engine is not None
    assert seen.header.engine.page_age == 5.0
    for end, sample in late.items():
        old = then[end - 5.0]
        assert (sample.running, sample.waiting) == (old.running, old.waiting)
        assert sample.scrape_start == end


def test_without_metrics_nothing_of_the_engine_is_recorded(pair: VirtualRun) -> None:
    seen = OBSERVATIONS["no metrics"](pair)
    assert _samples(seen) == []
    assert seen.replica_samples == ()


def test_only_the_first_of_two_replicas_is_seen(pair: VirtualRun) -> None:
    seen = OBSERVATIONS["one of two"](pair)
    assert {sample.replica for sample in seen.replica_samples} == {0}
    whole, half = _samples(pair)[-1], _samples(seen)[-1]
    assert half.scrape_start == whole.scrape_start
    assert half.requests_finished_total == pytest.approx((whole.requests_finished_total or math.nan) / 2, abs=2)


def test_only_runs_of_two_replicas_are_seen_by_half(run: VirtualRun, pair: VirtualRun) -> None:
    assert set(OBSERVATIONS) - set(observations_of(run)) == {"one of two"}
    assert set(observations_of(pair)) == set(OBSERVATIONS)
    with pytest.raises(ValueError, match="one replica"):
        OBSERVATIONS["one of two"](run)
