"""What a simulated run shows of its engine, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.kept_load import kept_rate, served_rate
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import RunCause, RunVerdict, run_verdict
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.story.story import story_of
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import StageChange
from servetop.core.histogram import LogHistogram
from servetop.simulator.virtual_run.engine_faults import KvLeak
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.analysis.story_runs import ramp, record_from
from tests.judgement.client_side import attached
from tests.judgement.observed import observations_of, without_batch_limit, without_metrics, without_waiting
from tests.simulator.virtual_run.runs import plan_of

LIGHT = WorkloadConfig(input_len=64, output_len=64)


def with_objectives(plan: VirtualRunPlan, **goodput: float) -> VirtualRunPlan:
    return replace(plan, config=replace(plan.config, goodput=goodput))


def record_of(run: VirtualRun) -> RunRecord:
    history, fold = TickHistory(run.ticks), EpisodeFold()
    fold.update(history, run.header.engine, stages=run.stages)
    return RunRecord(header=run.header, history=history, episodes=fold.episodes, stages=run.stages, end=run.end)


def told(run: VirtualRun) -> tuple[RunCause, str]:
    """Return the cause, and all that is said."""
    record = record_of(run)
    story = story_of(record, run_verdict(record))
    return story.verdict.cause, "\n".join([story.headline, *(line.text for line in story.lines)])


def test_a_batch_that_grows_for_the_whole_load_is_not_called_headroom() -> None:
    """The batch takes every request, so that none waits, but fewer complete than arrive."""
    load = StageConfig(request_rate=30.0, duration=40.0)
    large: dict[str, Any] = {"gpu.memory_bytes": 500e9, "max_num_seqs": 2048}
    plan = with_objectives(plan_of(load, workload=WorkloadConfig(input_len=150, output_len=400), **large), ttft=0.5)
    run = run_virtually(plan)
    cause, text = told(run)
    assert EpisodeKind.QUEUE not in {each.kind for each in record_of(run).episodes}
    assert cause not in (RunCause.HEADROOM, RunCause.MISSED), text
    assert "kept up" not in text
    assert "higher rate" not in text
    assert "≥" not in text


def test_ones_own_limit_of_requests_in_flight_is_not_blamed_on_the_engine() -> None:
    load = StageConfig(request_rate=30.0, max_concurrency=4, duration=20.0)
    cause, text = told(run_virtually(with_objectives(plan_of(load, workload=LIGHT), ttft=0.5)))
    assert cause is RunCause.CONCURRENCY
    assert "queued at the client by its limit of 4 in flight" in text
    assert "served at" not in text
    assert "engine serves" not in text


def test_all_objectives_count() -> None:
    load = StageConfig(request_rate=4.0, duration=40.0)
    kept, kept_text = told(run_virtually(with_objectives(plan_of(load, workload=LIGHT), ttft=0.5)))
    missed, text = told(run_virtually(with_objectives(plan_of(load, workload=LIGHT), ttft=0.5, tpot=0.001)))
    assert (kept, missed) == (RunCause.HEADROOM, RunCause.MISSED)
    assert "try a higher rate" in kept_text
    assert "sustainable" not in text
    assert "try a lower rate" in text


@pytest.mark.parametrize(("seconds", "claims"), [(10.0, False), (60.0, True)])
def test_a_short_run_claims_no_sustained_rate(seconds: float, claims: bool) -> None:
    load, even = StageConfig(request_rate=6.0, duration=seconds), replace(LIGHT, burstiness=100.0)
    cause, text = told(run_virtually(with_objectives(plan_of(load, workload=even), ttft=0.5)))
    assert cause is RunCause.HEADROOM
    assert ("sustainable ≥" in text) is claims


def test_without_a_batch_limit_on_the_page_a_full_batch_is_inferred() -> None:
    load = StageConfig(request_rate=20.0, duration=40.0)
    run = run_virtually(plan_of(load, workload=WorkloadConfig(input_len=64, output_len=128), max_num_seqs=8))
    assert told(run)[0] is RunCause.BATCH
    cause, text = told(without_batch_limit(run))
    assert cause is RunCause.BATCH
    assert "a batch limit of about 8" in text


def test_without_metrics_an_overload_has_no_named_cause_and_a_light_load_none_at_all() -> None:
    heavy = run_virtually(plan_of(StageConfig(request_rate=20.0, duration=40.0), workload=LIGHT, max_num_seqs=4))
    light = run_virtually(plan_of(StageConfig(request_rate=2.0, duration=40.0), workload=LIGHT))
    cause, text = told(without_metrics(heavy))
    assert cause is RunCause.UNKNOWN
    assert "the engine exports no metrics" in text
    assert not any(word in text for word in ("KV", "batch", "nothing waits", "≈"))
    assert told(without_metrics(light))[0] is RunCause.HEADROOM


def test_requests_that_were_cancelled_at_the_end_were_not_served() -> None:
    load = StageConfig(request_rate=12.0, duration=15.0)
    plan = plan_of(load, workload=WorkloadConfig(input_len=64, output_len=900), max_num_seqs=1024, drain_timeout=1.0)
    cause, text = told(run_virtually(with_objectives(plan, ttft=5.0)))
    assert cause is not RunCause.HEADROOM
    assert "kept up" not in text
    assert "served at" not in text


@pytest.mark.parametrize(("rate", "served"), [(0.8, 0.0), (6.0, 6.0)])
def test_a_rate_counts_as_served_with_enough_requests(rate: float, served: float) -> None:
    load = StageConfig(request_rate=rate, duration=40.0)
    plan = plan_of(load, workload=replace(LIGHT, burstiness=100.0))
    found = served_rate(record_of(run_virtually(with_objectives(plan, ttft=0.5))), at=0.0)
    assert found == pytest.approx(served, rel=0.1)


def test_what_was_served_with_another_batch_size_does_not_count() -> None:
    loads = (StageConfig(request_rate=8.0, duration=60.0), StageConfig(request_rate=4.0, duration=60.0))
    plan = plan_of(*loads, workload=replace(LIGHT, burstiness=100.0))
    record = record_of(run_virtually(with_objectives(plan, ttft=0.5)))
    sizes = (replace(stage, max_num_seqs=64 if stage.request_rate == 8.0 else 8) for stage in record.stages)
    changed = replace(record, stages=list(sizes))
    for found in (served_rate, kept_rate):
        assert found(record, at=record.until) == pytest.approx(8.0, rel=0.1)
        assert found(changed, at=record.until) == pytest.approx(4.0, rel=0.1)
        assert found(changed, at=0.0) == pytest.approx(8.0, rel=0.1)


def overloaded_by(load: StageConfig, workload: WorkloadConfig, **plan: Any) -> RunVerdict:
    settings: dict[str, Any] = {"max_num_seqs": 4}
    run = run_virtually(with_objectives(plan_of(load, workload=workload, plan=plan, **settings), ttft=0.5))
    return run_verdict(record_of(run))


def test_a_load_that_a_limit_keeps_at_the_client_tells_no_rate() -> None:
    load = StageConfig(request_rate=30.0, duration=60.0)
    assert overloaded_by(load, LIGHT).sustainable is not None
    assert overloaded_by(replace(load, max_concurrency=40), LIGHT).sustainable is None


def test_a_replica_has_only_its_own_slots_to_wait_for() -> None:
    work = replace(LIGHT, output_len=200)
    one = overloaded_by(StageConfig(request_rate=4.0, duration=90.0), work).sustainable
    two = overloaded_by(StageConfig(request_rate=8.0, duration=90.0), work, replicas=2).sustainable
    assert one is not None
    assert two == pytest.approx(2 * one, rel=0.1)


def test_bursts_between_two_pages_tell_no_rate() -> None:
    load, bursty = StageConfig(request_rate=30.0, duration=90.0), replace(LIGHT, burstiness=0.3)
    settings: dict[str, Any] = {"max_num_seqs": 16}
    run = run_virtually(with_objectives(plan_of(load, workload=bursty, **settings), ttft=0.5))
    assert run_verdict(record_of(run)).sustainable is not None
    for name in ("1 Hz", "0.2 Hz", "late pages"):
        assert run_verdict(record_of(observations_of(run)[name](run))).sustainable is None


@pytest.mark.parametrize(("seconds", "known"), [(18.0, False), (40.0, True)])
def test_no_rate_is_claimed_of_a_load_of_less_than_twenty_seconds(seconds: float, *, known: bool) -> None:
    load = StageConfig(request_rate=30.0, duration=seconds)
    settings: dict[str, Any] = {"max_num_seqs": 16}
    verdict = run_verdict(record_of(run_virtually(plan_of(load, workload=LIGHT, **settings))))
    assert verdict.cause is RunCause.BATCH
    assert (verdict.sustainable is not None) is known


def test_an_estimate_far_below_the_knee_is_not_claimed() -> None:
    load, bursty = StageConfig(request_rate=12.0, duration=90.0), replace(LIGHT, burstiness=0.3)
    settings: dict[str, Any] = {"max_num_seqs": 4}
    verdict = run_verdict(
        record_of(run_virtually(with_objectives(plan_of(load, workload=bursty, **settings), ttft=0.5)))
    )
    assert verdict.knee is not None
    assert verdict.sustainable is None


@pytest.mark.parametrize(("burstiness", "cause"), [(0.25, RunCause.UNCLEAR), (1.0, RunCause.HEADROOM)])
def test_few_bursts_are_no_headroom(burstiness: float, cause: RunCause) -> None:
    load, work = StageConfig(request_rate=2.0, duration=40.0), replace(LIGHT, burstiness=burstiness)
    found, text = told(run_virtually(with_objectives(plan_of(load, workload=work), ttft=0.5)))
    assert found is cause, text
    assert ("too few bursts came" in text) is (cause is RunCause.UNCLEAR)
    assert ("kept up" in text) is (cause is RunCause.HEADROOM)


def test_preemptions_are_those_of_the_loads_of_the_overload() -> None:
    loads = [StageChange(at=at, index=0, label="", request_rate=4.0, max_concurrency=None, max_num_seqs=None)
             for at in (0.0, 10.0, 20.0)]  # fmt: skip
    load = StageConfig(request_rate=4.0, duration=30.0)
    record = replace(record_of(run_virtually(plan_of(load, workload=LIGHT))), stages=loads)
    counts = [record.total("ok", start, until) for start, until in ((0.0, 10.0), (10.0, 20.0), (20.0, 99.0))]
    assert record.total_of_loads("ok", 12.0, 15.0) == pytest.approx(counts[1], abs=2)
    assert record.total_of_loads("ok", 12.0, 22.0) == pytest.approx(sum(counts[1:]), abs=2)


@pytest.mark.parametrize(("floor", "rate"), [(0.25, 2.15), (0.15, None)])
def test_an_engine_that_loses_blocks_is_not_believed_to_serve_what_it_did(floor: float, rate: float | None) -> None:
    """It served 5 requests/s until it lost its blocks; of few sequences in what is left no rate is known."""
    load, work = StageConfig(request_rate=5.0, duration=120.0), replace(LIGHT, output_len=200)
    leak = KvLeak(start=50.0, rate=30.0, floor=floor)
    plan = plan_of(load, workload=work, plan={"leak": leak}, kv_blocks=400)
    record = record_of(run_virtually(with_objectives(plan, ttft=0.5)))
    assert served_rate(record, at=0.0) == pytest.approx(5.0, rel=0.05)
    found = run_verdict(record).sustainable
    assert found is None if rate is None else found == pytest.approx(rate, rel=0.1)


def test_a_rate_within_several_objectives_is_what_the_run_kept() -> None:
    slow = (StageConfig(request_rate=4.0, duration=60.0), StageConfig(request_rate=40.0, duration=40.0))
    plan = plan_of(*slow, workload=LIGHT, max_num_seqs=8)
    estimated = told(run_virtually(with_objectives(plan, ttft=0.5)))
    kept = told(run_virtually(with_objectives(plan, ttft=0.5, tpot=0.1)))
    assert estimated[0] is kept[0] is RunCause.BATCH
    assert "sustainable ≈" in estimated[1]
    assert "sustainable ≥ 3.9" in kept[1]
    assert "≈" not in kept[1]


def test_without_a_queue_gauge_free_slots_of_a_server_do_not_blame_the_engine() -> None:
    load, prompts = StageConfig(request_rate=30.0, duration=40.0), WorkloadConfig(input_len=1500, output_len=8)
    own = run_virtually(with_objectives(plan_of(load, workload=prompts), ttft=0.5))
    assert told(own)[0] is told(attached(own))[0] is told(without_waiting(own))[0] is RunCause.RATE
    cause, text = told(without_waiting(attached(own)))
    assert cause is RunCause.UNKNOWN
    assert "which limit holds them is unknown: the engine exports no queue" in text


def test_first_misses_of_bursty_arrivals_are_no_cold_start() -> None:
    ticks = ramp(waiting=[0.0] * 60)
    late = LogHistogram.of([2.0] * 3)
    for index in range(32):
        ticks[index] = replace(ticks[index], client=replace(ticks[index].client, ttft=late, ttft_due=late))
    even = record_from(ticks, goodput={"ttft": 0.5})
    bursty = replace(even.header.config, workload=replace(even.header.config.workload, burstiness=0.2))
    assert run_verdict(even).cold_until is not None
    assert run_verdict(replace(even, header=replace(even.header, config=bursty))).cold_until is None
