"""Which of several replicas is limited, by what, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.replica_limits import holds_more, limit_is_elsewhere, replica_limits, ticks_of_replica
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, longest_overload, run_verdict
from servetop.analysis.story.story import story_of
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.analysis.test_run_verdict import record_of, with_objectives
from tests.judgement.observed import without_batch_limit, without_second_replica, without_waiting
from tests.simulator.virtual_run.runs import plan_of

SHAPE = WorkloadConfig(input_len=64, output_len=128)
LOAD = StageConfig(request_rate=12.0, duration=20.0)


def two_replicas(second: dict[str, Any], **both: Any) -> VirtualRun:
    """A load that is sent in turns to two replicas, the second with other settings."""
    plan = replace(plan_of(LOAD, workload=SHAPE, **both), replicas=2, replica_settings={1: second} if second else {})
    return run_virtually(with_objectives(plan, ttft=0.5))


def record(run: VirtualRun, **changes: Any) -> RunRecord:
    return replace(record_of(run), **{"replica_samples": run.replica_samples, **changes})


def told(judged: RunRecord) -> tuple[RunCause, str]:
    story = story_of(judged, run_verdict(judged))
    return story.verdict.cause, "\n".join([story.headline, *(line.text for line in story.lines)])


@pytest.fixture(scope="module")
def small_second() -> VirtualRun:
    """The second replica runs two sequences at once, the first as many as come."""
    return two_replicas({"max_num_seqs": 2})


def test_a_small_replica_is_named_with_its_batch_and_its_queue(small_second: VirtualRun) -> None:
    cause, text = told(record(small_second))
    assert cause is RunCause.BATCH
    assert "batch-bound at replica 2 of 2 from" in text
    assert "replica 2 of 2 (http://sim-1): the batch of 2 is full" in text
    assert "waiting at replica 2, " in text
    assert "a larger max_num_seqs for replica 2" in text
    assert "more replicas" not in text
    assert "sustainable" not in text


def test_a_limit_that_is_not_exported_is_inferred_for_the_replica_alone(small_second: VirtualRun) -> None:
    cause, text = told(record(without_batch_limit(small_second)))
    assert cause is RunCause.BATCH
    assert "replica 2 of 2 (http://sim-1): the engine runs at most 2 at once" in text


def test_a_small_kv_cache_is_told_beside_that_of_the_others() -> None:
    judged = record(two_replicas({"kv_blocks": 60}))
    cause, text = told(judged)
    assert cause is RunCause.KV
    assert "KV-bound at replica 2 of 2" in text
    assert "blocks hold" not in text
    main = run_verdict(judged).main
    assert main is not None
    limits = replica_limits(judged, main)
    assert limits is not None
    assert limits.kv_peaks[1] > 0.9 > 0.5 > limits.kv_peaks[0]
    assert limits.most_waiting[1] > 5 > limits.most_waiting[0]


def test_replicas_with_the_same_limit_are_named_together() -> None:
    cause, text = told(record(two_replicas({}, max_num_seqs=2)))
    assert cause is RunCause.BATCH
    assert "each of 2 replicas: the batch of 2 is full" in text
    assert "at replica" not in text


def test_of_a_replica_without_metrics_nothing_is_said(small_second: VirtualRun) -> None:
    judged = record(without_second_replica(small_second))
    main = run_verdict(judged).main
    assert main is None or replica_limits(judged, main) is None
    _, text = told(judged)
    assert "no queue" not in text
    assert "nothing waits" not in text
    assert "at replica 2" not in text


def test_a_single_server_has_no_replicas(small_second: VirtualRun) -> None:
    judged = record(small_second, replica_samples=())
    main = run_verdict(judged).main
    assert main is not None
    assert replica_limits(judged, main) is None


def test_a_replica_that_does_not_answer_has_no_sample(small_second: VirtualRun) -> None:
    until = small_second.ticks[40].end
    early = [each for each in small_second.replica_samples if each.replica == 1 and each.scrape_end <= until]
    own = ticks_of_replica(small_second.ticks, early, 1)
    assert own[39].engine is not None
    assert own[39].engine.running == next(
        each.running for each in reversed(early) if each.scrape_end <= own[39].end + 1e-9
    )
    assert own[80].engine is None
    assert [tick.client for tick in own] == [tick.client for tick in small_second.ticks]


def test_limits_are_those_of_each_replica(small_second: VirtualRun) -> None:
    judged = record(small_second)
    main = run_verdict(judged).main
    assert main is not None
    limits = replica_limits(judged, main)
    assert limits is not None
    assert [(each.number, each.limit, each.batch) for each in limits.limited] == [(1, Limit.BATCH, 2.0)]
    assert limits.uneven


def test_figures_of_one_of_two_replicas_are_not_those_of_both() -> None:
    _, text = told(record(without_second_replica(two_replicas({}, max_num_seqs=2))))
    assert "the queue grows, to" not in text
    assert "preemptions" not in text
    assert "sequences" not in text


def test_a_limit_of_the_seen_replica_is_not_that_of_one_that_holds_far_more(small_second: VirtualRun) -> None:
    """The first replica has a small cache as well, but most requests wait for the two slots of the second."""
    seen = record(without_second_replica(two_replicas({"max_num_seqs": 2}, kv_blocks=200)))
    cause, text = told(seen)
    assert cause in (RunCause.UNKNOWN, RunCause.MISSED)
    assert "KV-bound" not in text
    main = longest_overload(seen, loaded=seen.until - seen.load_since)
    assert main is None or main.main is None or limit_is_elsewhere(seen, main.main)
    whole = record(small_second)
    all_seen = run_verdict(whole).main
    assert all_seen is not None
    assert not limit_is_elsewhere(whole, all_seen)


def test_an_overload_that_may_be_a_hidden_queue_has_no_onset() -> None:
    text = told(record(without_second_replica(two_replicas({"max_num_seqs": 2}))))[1]
    assert not text.startswith("overloaded from")
    assert " at 12.0 req/s" in text or "objectives missed" in text


def test_rates_are_those_of_the_slots_that_are_seen_and_no_batch_size_is_advised() -> None:
    plan = replace(plan_of(replace(LOAD, duration=60.0), workload=SHAPE, max_num_seqs=4), replicas=2)
    run = run_virtually(with_objectives(plan, ttft=0.5))
    whole, half = (run_verdict(record(each)) for each in (run, without_second_replica(run)))
    assert whole.cause is half.cause is RunCause.BATCH
    assert whole.sustainable is not None
    assert half.sustainable == pytest.approx(whole.sustainable, rel=0.02)
    assert whole.advised_batch == 32
    assert half.advised_batch is None
    assert "try a larger max_num_seqs" in told(record(without_second_replica(run)))[1]


@pytest.mark.parametrize(("in_flight", "more"), [(30.0, False), (60.0, True)])
def test_replicas_without_metrics_hold_more_if_most_requests_are_not_seen(in_flight: float, *, more: bool) -> None:
    assert holds_more(in_flight, 15.0, seen=1, count=2) is more
    assert not holds_more(in_flight, 15.0, seen=2, count=2)
    assert not holds_more(in_flight, 0.0, seen=0, count=2)


def test_without_queues_a_replica_is_not_told_apart_from_the_others(small_second: VirtualRun) -> None:
    _, text = told(record(without_waiting(two_replicas({"max_num_seqs": 2}, kv_blocks=200))))
    assert " at replica 1 of 2" not in text
