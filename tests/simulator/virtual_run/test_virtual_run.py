"""Virtual runs agree with predictions, and show in their ticks what each part of the run did."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.core.tick import TICK_SECONDS
from servetop.simulator.predict.predict import PredictSpec, predict_cell
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.simulator.virtual_run.runs import merged, plan_of, total

BUSY = StageConfig(request_rate=12.0, num_prompts=300)
VARIED = WorkloadConfig(input_len=200, output_len=100, lengths="lognormal")


@pytest.mark.parametrize("workload", [WorkloadConfig(), VARIED])
@pytest.mark.parametrize("kv_blocks", [500, 2500])
def test_a_stage_has_the_totals_and_latencies_of_its_prediction(workload: WorkloadConfig, kv_blocks: int) -> None:
    run = run_virtually(plan_of(BUSY, workload=workload, kv_blocks=kv_blocks))
    cell = predict_cell(PredictSpec(workload=workload, seed=3, sweep=False, settings={"kv_blocks": kv_blocks}), BUSY)
    assert total(run.ticks, "ok") == total(run.ticks, "sent") == total(run.ticks, "due") == cell.completed
    assert total(run.ticks, "output_tokens") == pytest.approx(cell.output_throughput * cell.duration)
    last = run.ticks[-1].engine
    assert last is not None
    assert last.preemptions_total == cell.preemptions
    assert cell.max_kv_usage * 0.9 <= max(tick.engine.kv_usage or 0 for tick in run.ticks if tick.engine)
    for name, latency in {"ttft": cell.ttft_ms, "itl": cell.itl_ms, "e2el": cell.e2el_ms}.items():
        histogram = merged(run.ticks, name)
        assert histogram.percentile(50) * 1e3 == pytest.approx(latency.p50, rel=0.02), name
        assert histogram.percentile(99) * 1e3 == pytest.approx(latency.p99, rel=0.02), name
        assert histogram.mean * 1e3 == pytest.approx(latency.mean, rel=0.001, abs=1e-3), name


def test_the_counts_of_client_and_engine_agree_at_every_scrape() -> None:
    run = run_virtually(plan_of(BUSY, kv_blocks=500))
    sent, ended = [0], [0]
    for tick in run.ticks:
        sent.append(sent[-1] + tick.client.sent)
        ended.append(ended[-1] + tick.client.ok)
        assert tick.client.gauges.in_flight == sent[-1] - ended[-1]
    samples = [(tick, tick.engine) for tick in run.ticks if tick.engine is not None]
    for tick, sample in samples:
        assert sample.scrape_start in (tick.start, tick.end)
        boundary = round(sample.scrape_start / TICK_SECONDS)
        assert (sample.running or 0) + (sample.waiting or 0) == sent[boundary] - ended[boundary]
        assert sample.requests_finished_total == ended[boundary]
    assert 0.1 < sum(sample.scrape_start == tick.end for tick, sample in samples) / len(samples) < 0.4


def test_the_backlog_of_a_stage_remains_in_the_next_one_and_delays_its_requests() -> None:
    quiet = StageConfig(request_rate=2.0, duration=20.0)
    alone = run_virtually(plan_of(quiet, kv_blocks=500))
    after = run_virtually(plan_of(StageConfig(request_rate=25.0, duration=20.0), quiet, kv_blocks=500))
    assert [stage.at for stage in after.stages] == [0.0, 20.0]
    first = [tick for tick in after.ticks if 20 <= tick.start < 30]
    assert {tick.client.gauges.stage for tick in first} == {1}
    assert merged(first, "ttft").percentile(50) > 20 * merged(alone.ticks, "ttft").percentile(50)


def test_a_warm_up_drains_before_the_next_stage() -> None:
    warmup = StageConfig(request_rate=25.0, duration=10.0, warmup=True)
    run = run_virtually(plan_of(warmup, StageConfig(request_rate=2.0, duration=5.0), kv_blocks=500))
    begin = run.stages[1].at
    assert begin > 11.0
    assert max(record.done_at or 0.0 for record in run.records if record.stage == 0) == begin


def test_a_ramp_shows_the_rate_in_force() -> None:
    run = run_virtually(plan_of(StageConfig(request_rate=10.0, ramp_from=2.0, duration=40.0)))
    rates = [tick.client.gauges.request_rate or 0.0 for tick in run.ticks if tick.end < 40]
    assert rates == pytest.approx([2.0 + 8.0 * tick.end / 40 for tick in run.ticks if tick.end < 40])
    assert total(run.ticks[:80], "due") < total(run.ticks[80:], "due") / 1.5


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"kv_blocks": 400}, AdmissionLimit.KV),
        ({"max_num_seqs": 12, "kv_blocks": 2500}, AdmissionLimit.BATCH),
    ],
)
def test_the_admission_log_names_what_keeps_requests_waiting(limits: dict[str, Any], expected: AdmissionLimit) -> None:
    run = run_virtually(plan_of(StageConfig(request_rate=20.0, duration=30.0), **limits))
    states = [state for state in run.admissions if 10 <= state.at < 30]
    assert min(state.waiting for state in states) > 2
    assert Counter(state.limit for state in states)[expected] > 0.8 * len(states)
    assert (sum(state.preempted for state in run.admissions) > 0) == (expected is AdmissionLimit.KV)


def test_the_queue_behind_a_full_batch_is_logged_though_nothing_is_decided() -> None:
    workload = WorkloadConfig(input_len=16, output_len=3000)
    run = run_virtually(plan_of(StageConfig(request_rate=2.0, duration=20.0), workload=workload, max_num_seqs=4))
    pages = [tick.engine for tick in run.ticks if tick.engine is not None and 5 <= tick.engine.scrape_end < 20]
    logged = [[each for each in run.admissions if each.at <= page.scrape_start][-1] for page in pages]
    assert max(page.waiting or 0 for page in pages) > 20
    assert [state.waiting for state in logged] == [page.waiting for page in pages]
    assert {state.limit for state in logged} == {AdmissionLimit.BATCH}


def test_prompts_that_fill_every_iteration_wait_for_the_token_budget() -> None:
    workload = WorkloadConfig(input_len=2000, output_len=4)
    run = run_virtually(plan_of(StageConfig(request_rate=20.0, duration=20.0), workload=workload))
    assert (
        Counter(state.limit for state in run.admissions if state.at > 10).most_common(1)[0][0] is AdmissionLimit.BUDGET
    )


def test_requests_that_can_never_fit_are_refused_with_http_400() -> None:
    run = run_virtually(plan_of(StageConfig(request_rate=5.0, duration=4.0), kv_blocks=10))
    assert total(run.ticks, "errors") == total(run.ticks, "sent") > 10
    assert {record.http_status for record in run.records} == {400}


def test_a_share_of_the_requests_fails_during_an_outage() -> None:
    outage = Outage(kind=OutageKind.HTTP_500, start=10.0, until=20.0, share=0.5)
    run = run_virtually(plan_of(StageConfig(request_rate=10.0, duration=30.0), outages=(outage,)))
    failed = [record.sent or 0.0 for record in run.records if record.status is RequestStatus.ERROR]
    assert 30 < len(failed) < 70
    assert 10.0 <= min(failed) <= max(failed) < 20.0
    assert len(run.log_lines) == len(failed)


def test_a_crash_ends_requests_in_flight_and_the_metrics() -> None:
    crash = Outage(kind=OutageKind.CRASH, start=10.1)
    run = run_virtually(plan_of(StageConfig(request_rate=10.0, duration=20.0), outages=(crash,)))
    assert total(run.ticks, "truncated") > 0
    assert all(tick.engine is None for tick in run.ticks if tick.start >= 10.5)
    later = [record for record in run.records if (record.sent or 0.0) > 10.1]
    assert {record.error for record in later} == {"connection refused"}
    assert total(run.ticks, "sent") == len(run.records)


def test_requests_beyond_the_drain_timeout_are_cancelled() -> None:
    run = run_virtually(plan_of(StageConfig(request_rate=30.0, duration=20.0), kv_blocks=300, drain_timeout=5.0))
    cancelled = [record for record in run.records if record.status is RequestStatus.CANCELLED]
    assert cancelled
    assert {record.done_at for record in cancelled} == {25.0}
    assert total(run.ticks, "cancelled") == len(cancelled)
    assert run.end.at == 25.25


def test_the_same_plan_gives_the_same_ticks() -> None:
    first, second = (run_virtually(plan_of(BUSY, kv_blocks=500)) for _ in range(2))
    assert [tick.engine for tick in first.ticks] == [tick.engine for tick in second.ticks]
    assert [tick.client.loop_lag for tick in first.ticks] == [tick.client.loop_lag for tick in second.ticks]


def test_conversations_have_the_totals_and_latencies_of_their_prediction() -> None:
    workload = WorkloadConfig(num_turns="3", think_time="0.5", input_len=50, output_len=20)
    stage = StageConfig(request_rate=4.0, num_prompts=40)
    run = run_virtually(plan_of(stage, workload=workload))
    cell = predict_cell(PredictSpec(workload=workload, seed=3, sweep=False), stage)
    assert total(run.ticks, "ok") == total(run.ticks, "sent") == cell.completed == 120
    assert merged(run.ticks, "ttft").mean * 1e3 == pytest.approx(cell.ttft_ms.mean, rel=0.001)
    assert merged(run.ticks, "e2el").mean * 1e3 == pytest.approx(cell.e2el_ms.mean, rel=0.001)


@pytest.mark.parametrize("workload", [WorkloadConfig(n=2), WorkloadConfig(cancel_fraction=0.5)])
def test_several_completions_and_cancellations_are_refused(workload: WorkloadConfig) -> None:
    with pytest.raises(UsageError, match="requests with one completion that the client does not cancel"):
        run_virtually(plan_of(BUSY, workload=workload))


def test_requests_beyond_the_context_are_refused_and_others_served() -> None:
    plan = plan_of(StageConfig(request_rate=5.0, duration=10.0), workload=VARIED, max_model_len=300)
    run = run_virtually(plan)
    errors = {(record.error or "").partition(" is ")[0] for record in run.records if record.http_status == 400}
    assert errors == {"HTTP 400: this model's maximum context length"}
    assert total(run.ticks, "errors") + total(run.ticks, "ok") == total(run.ticks, "sent")
    assert total(run.ticks, "ok") > 0


def test_ticks_count_the_requests_that_met_the_objectives() -> None:
    plan = plan_of(StageConfig(request_rate=6.0, duration=10.0), max_num_seqs=4)
    assert {tick.client.good_due for tick in run_virtually(plan).ticks} == {None}
    goodput = {"ttft": 0.5}
    run = run_virtually(replace(plan, config=replace(plan.config, goodput=goodput)))
    met = [each for each in run.records if (each.first_token_at or 0.0) - each.due <= 0.5]
    assert 0 < len(met) < len(run.records)
    assert total(run.ticks, "good_due") == len(met)
