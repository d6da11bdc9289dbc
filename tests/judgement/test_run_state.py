"""What is read from the simulator's state about a run."""

from __future__ import annotations

import pytest

from servetop.core.config import StageConfig
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.judgement.run_state import RunState
from tests.simulator.virtual_run.runs import plan_of


def _state(*stages: StageConfig, **parts: object) -> RunState:
    return RunState(run_virtually(plan_of(*stages, **parts)))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def full_batch() -> RunState:
    stages = (StageConfig(request_rate=0.3, duration=10.0), StageConfig(request_rate=6.0, duration=12.0))
    return _state(*stages, max_num_seqs=4)


def test_a_full_batch_keeps_the_queue_waiting(full_batch: RunState) -> None:
    (queue,) = full_batch.queues
    assert 10.0 < queue.start < 14.0
    assert queue.until > 22.0
    assert full_batch.limit_share(AdmissionLimit.BATCH) > 0.9
    assert full_batch.running.max() == 4
    assert 10.0 < (full_batch.first_limited(AdmissionLimit.BATCH) or 0.0) <= queue.start
    assert not full_batch.preemptions


def test_objectives_decide_whether_a_queue_does_harm(full_batch: RunState) -> None:
    assert full_batch.share_met() == 1.0
    assert not full_batch.overloaded


def test_the_worst_ttft_is_that_of_the_last_requests(full_batch: RunState) -> None:
    waits = sorted((each.first_token_at or 0.0) - each.due for each in full_batch.records)
    assert waits[-5] < full_batch.worst_ttft <= waits[-1]


def test_requests_pile_up_in_a_large_batch_without_a_queue() -> None:
    growing = _state(StageConfig(request_rate=30.0, duration=20.0), max_num_seqs=1024, kv_blocks=20_000)
    assert growing.grew
    assert growing.queues == []
    assert not _state(StageConfig(request_rate=1.0, duration=20.0)).grew


def test_a_concurrency_limit_holds_requests_at_the_client() -> None:
    held = _state(StageConfig(request_rate=8.0, max_concurrency=2, duration=10.0))
    assert held.held
    assert not held.closed
    assert held.held_back.max() > 10
    assert held.in_flight.max() == 2
    closed = _state(StageConfig(max_concurrency=2, duration=5.0))
    assert closed.closed
    assert not closed.held


def test_the_queues_of_all_replicas_count() -> None:
    pair = _state(StageConfig(request_rate=10.0, duration=10.0), plan={"replicas": 2}, max_num_seqs=2)
    assert pair.running.max() == 4
    assert pair.waiting.max() > max(state.waiting for state in pair.run.admissions)
    assert (pair.waiting_at([0]) + pair.waiting_at([1]) == pair.waiting_at([0, 1])).all()
    assert (pair.waiting_at([0, 1]) == pair.waiting).all()


def test_the_share_of_a_load_counts_the_time_without_a_queue_too(full_batch: RunState) -> None:
    begin, end = full_batch.last_load
    queued = sum(min(each.until, end) - max(each.start, begin) for each in full_batch.queues) / (end - begin)
    assert full_batch.limit_share_of_load(AdmissionLimit.BATCH) == pytest.approx(queued, abs=0.1)
    assert full_batch.limit_share_of_load(AdmissionLimit.KV) == 0.0
    growing = _state(StageConfig(request_rate=30.0, duration=20.0), max_num_seqs=1024, kv_blocks=20_000)
    assert growing.limit_share_of_load(AdmissionLimit.BATCH) == 0.0


def test_the_first_failure_is_that_of_an_outage(full_batch: RunState) -> None:
    assert full_batch.first_failure is None
    load = StageConfig(request_rate=10.0, duration=20.0)
    failed = _state(load, outages=(Outage(kind=OutageKind.HTTP_500, start=8.0, until=12.0),))
    assert failed.first_failure == pytest.approx(8.0, abs=2.0)
