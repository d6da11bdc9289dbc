"""What the client sees over a network, or beside other clients; the engine's side stays as it was."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.judgement.client_side import delayed, shared_with_others, through_link
from tests.simulator.virtual_run.runs import merged, plan_of, total


@pytest.fixture(scope="module")
def run() -> VirtualRun:
    plan = plan_of(StageConfig(request_rate=4.0, duration=12.0))
    return run_virtually(dataclasses.replace(plan, config=dataclasses.replace(plan.config, goodput={"ttft": 0.5})))


def test_without_a_delay_the_ticks_count_the_same(run: VirtualRun) -> None:
    same = delayed(run, 0.0)
    for name in ("due", "sent", "ok", "output_tokens", "prompt_tokens", "good_due"):
        assert [getattr(tick.client, name) for tick in same.ticks] == pytest.approx(
            [getattr(tick.client, name) for tick in run.ticks], abs=40 if name == "output_tokens" else 1
        )
        assert total(same.ticks, name) == total(run.ticks, name)
    for name in ("ttft", "ttft_due", "tpot", "e2el"):
        assert merged(same.ticks, name).mean == pytest.approx(merged(run.ticks, name).mean)
    assert [tick.client.gauges.in_flight for tick in same.ticks] == [tick.client.gauges.in_flight for tick in run.ticks]
    assert [tick.engine for tick in same.ticks] == [tick.engine for tick in run.ticks]


def test_a_round_trip_delays_everything_that_the_client_receives(run: VirtualRun) -> None:
    late = delayed(run, 0.7)
    assert merged(late.ticks, "ttft").mean == pytest.approx(merged(run.ticks, "ttft").mean + 0.7, rel=0.02)
    assert merged(late.ticks, "tpot").mean == pytest.approx(merged(run.ticks, "tpot").mean, rel=0.02)
    assert late.ticks[-1].end >= max(record.done_at or 0.0 for record in late.records)
    assert total(late.ticks, "good_due") == 0


def test_a_thin_link_carries_so_many_tokens_per_second(run: VirtualRun) -> None:
    tokens = sum(record.output_tokens for record in run.records)
    thin = through_link(run, tokens / 20.0)
    last = max(record.done_at or 0.0 for record in thin.records)
    assert last == pytest.approx(20.0 + min(record.first_token_at or 0.0 for record in run.records), abs=2.0)
    before = {record.id: record for record in run.records}
    assert all((record.done_at or 0.0) >= (before[record.id].done_at or 0.0) for record in thin.records)
    assert max(tick.client.gauges.in_flight for tick in thin.ticks) > max(
        tick.client.gauges.in_flight for tick in run.ticks
    )
    wide = through_link(run, 1e9)
    assert merged(wide.ticks, "e2el").mean == pytest.approx(merged(run.ticks, "e2el").mean, rel=0.01)


def test_what_the_link_does_not_carry_in_time_is_cancelled(run: VirtualRun) -> None:
    config = dataclasses.replace(run.header.config, drain_timeout=2.0)
    brief = dataclasses.replace(run, header=dataclasses.replace(run.header, config=config))
    thin = through_link(brief, sum(record.output_tokens for record in run.records) / 60.0)
    cancelled = [record for record in thin.records if record.status is RequestStatus.CANCELLED]
    assert cancelled
    assert len(thin.records) == len(run.records)
    assert total(thin.ticks, "cancelled") == len(cancelled)


def test_other_clients_requests_are_in_the_engine_alone(run: VirtualRun) -> None:
    ours = {record.id for record in run.records if record.id % 4 == 0}
    seen = shared_with_others(run, ours)
    assert {record.id for record in seen.records} == ours
    assert total(seen.ticks, "sent") == len(ours)
    assert [tick.engine for tick in seen.ticks][: len(run.ticks)] == [tick.engine for tick in run.ticks]
    assert seen.stages[-1].request_rate == pytest.approx(1.0, rel=0.1)
    assert seen.header.config.stages[0].request_rate == seen.stages[-1].request_rate
    rates = [tick.client.gauges.request_rate for tick in seen.ticks if tick.client.gauges.request_rate]
    assert np.mean(rates) == pytest.approx(1.0, rel=0.1)
