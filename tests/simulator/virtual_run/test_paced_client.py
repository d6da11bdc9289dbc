"""The client of a virtual run: costs of its event loop, limits, closed loops."""

from __future__ import annotations

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts
from tests.simulator.virtual_run.runs import merged, plan_of, total

CONSTANT = WorkloadConfig(input_len=32, output_len=8, arrivals="constant")


def test_a_sender_below_the_rate_sends_ever_later_and_its_heartbeat_lags_as_much() -> None:
    client = ClientCosts(per_request=0.125, per_chunk=0.0, per_beat=0.0)
    run = run_virtually(plan_of(StageConfig(request_rate=10.0, duration=20.0), workload=CONSTANT, client=client))
    assert total(run.ticks, "sent") == 200
    last = [tick for tick in run.ticks if 19.0 <= tick.start < 20.0]
    assert merged(last, "slip").percentile(50) == pytest.approx(19.5 * 0.2, abs=0.3)
    assert merged(last, "loop_lag").percentile(50) == pytest.approx(19.5 * 0.25, abs=0.3)
    assert total(last, "sent") == 8
    assert total(last, "cpu_seconds") == pytest.approx(1.0, abs=0.02)


def test_a_sender_may_slow_down_in_the_middle_of_a_run() -> None:
    client = ClientCosts(per_request=0.01, per_chunk=0.0, per_beat=0.0, slow_from=10.0, slowdown=15.0)
    run = run_virtually(plan_of(StageConfig(request_rate=10.0, duration=20.0), workload=CONSTANT, client=client))
    before = [tick for tick in run.ticks if tick.end <= 10.0]
    after = [tick for tick in run.ticks if tick.start > 15.0]
    assert merged(before, "slip").percentile(99) < 0.011
    assert merged(after, "slip").percentile(1) > 1.0


def test_a_concurrency_limit_queues_requests_at_the_client() -> None:
    stage = StageConfig(request_rate=20.0, duration=10.0, max_concurrency=4)
    run = run_virtually(plan_of(stage))
    gauges = [tick.client.gauges for tick in run.ticks if 5.0 < tick.end < 10.0]
    assert {each.in_flight for each in gauges} == {4}
    assert min(each.queued for each in gauges) > 10
    assert merged(run.ticks, "client_wait").count == merged(run.ticks, "ttft").count - merged(run.ticks, "slip").count


def test_a_closed_loop_keeps_its_number_of_requests_in_flight() -> None:
    run = run_virtually(plan_of(StageConfig(max_concurrency=7, duration=10.0)))
    middle = [tick for tick in run.ticks if 1.0 < tick.end < 10.0]
    assert {tick.client.gauges.in_flight for tick in middle} == {7}
    assert merged(run.ticks, "slip").percentile(99) < 1e-6


def test_a_closed_loop_retries_failed_requests_after_a_doubling_pause_and_at_last_every_second() -> None:
    run = run_virtually(plan_of(StageConfig(max_concurrency=3, duration=10.0), kv_blocks=10))
    assert total([tick for tick in run.ticks if tick.end <= 1.0], "errors") > 6
    assert 25 <= total([tick for tick in run.ticks if tick.end > 1.0], "errors") <= 30
