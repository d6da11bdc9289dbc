"""Lost KV blocks and pauses of the engine of a virtual run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import EngineSample, RequestStatus
from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from servetop.simulator.virtual_run.engine_faults import EnginePause, FaultSchedule, KvLeak
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.simulator.virtual_run.runs import plan_of

LOAD = StageConfig(request_rate=6.0, duration=20.0)
QUIET = StageConfig(request_rate=0.001, duration=10.0)
"""No request, so that the last pages are those of an idle engine."""
LEAK = KvLeak(start=4.0, rate=60.0, floor=0.25)
"""75 % of 500 blocks within 6.3 s."""
PAUSES = (EnginePause(start=5.0, seconds=2.0), EnginePause(start=12.0, seconds=1.5))
VARIED = WorkloadConfig(input_len=200, output_len=60, range_ratio=0.5)
FIELDS = ("leak", "pauses", "engine_profile", "gpus", "replicas")
ENGINES = ("vllm-0.2.1", "vllm-0.2.1-swap", "vllm-current", "sglang-current", "tensorrt-llm-2024", "tgi-2024")


def _run(load: StageConfig = LOAD, **parts: Any) -> VirtualRun:
    """The run with these settings of the engine, and fields of the plan; 500 blocks without another number."""
    fields: dict[str, Any] = {name: parts.pop(name) for name in FIELDS if name in parts}
    return run_virtually(plan_of(load, QUIET, plan=fields, **{"kv_blocks": 500, **parts}))


def _pages(run: VirtualRun) -> list[EngineSample]:
    return [tick.engine for tick in run.ticks if tick.engine is not None]


def _times(run: VirtualRun) -> list[tuple[float | None, float | None]]:
    return [(each.first_token_at, each.done_at) for each in sorted(run.records, key=lambda each: each.id)]


# --- without a fault ---


@pytest.mark.parametrize("engine", ENGINES)
def test_faults_after_the_end_change_nothing(engine: str) -> None:
    never: dict[str, Any] = {
        "leak": KvLeak(start=1e6, rate=1.0, floor=0.5),
        "pauses": (EnginePause(start=1e6, seconds=1.0),),
    }
    plain = _run(kv_blocks=300, engine_profile=engine)
    faulty = _run(kv_blocks=300, engine_profile=engine, **never)
    assert _times(plain) == _times(faulty)
    assert _pages(plain) == _pages(faulty)
    assert plain.replica_admissions == faulty.replica_admissions


def test_a_run_without_faults_has_the_times_that_it_had_before_there_were_any() -> None:
    run = run_virtually(plan_of(StageConfig(request_rate=12.0, num_prompts=200), kv_blocks=500))
    assert _pages(run)[-1].preemptions_total == 14
    assert sum(each.done_at or 0.0 for each in run.records) == pytest.approx(2184.172064290534, rel=1e-12)
    assert sum(each.first_token_at or 0.0 for each in run.records) == pytest.approx(1671.2863513037955, rel=1e-12)


# --- a leak ---


@pytest.mark.parametrize("engine", ENGINES)
def test_all_requests_are_served_with_the_blocks_that_stay(engine: str) -> None:
    run = _run(leak=LEAK, engine_profile=engine, workload=VARIED)
    assert {each.status for each in run.records} == {RequestStatus.OK}
    last = _pages(run)[-1]
    assert last.running == last.waiting == 0
    assert last.kv_blocks_used == 375
    assert last.kv_usage == 0.75


def test_lost_blocks_are_shown_as_used_of_an_unchanged_total() -> None:
    run = _run(StageConfig(request_rate=0.1, duration=20.0), leak=KvLeak(start=4.0, rate=20.0, floor=0.5))
    assert {each.kv_blocks_total for each in _pages(run)} == {500}
    idle = [each for each in _pages(run) if not each.running]
    lost = {each.scrape_start: each.kv_blocks_used or 0.0 for each in idle}
    assert {used for at, used in lost.items() if at <= 4.0} == {0}
    assert all(used == pytest.approx(20 * (at - 4), abs=3) for at, used in lost.items() if 4 < at < 16)
    assert {used for at, used in lost.items() if at > 17} == {250}


def test_lost_blocks_are_never_used_again() -> None:
    plain, leaking = _run(), _run(leak=LEAK)
    most = [max(each.running for each in run.admissions if each.at > 12) for run in (plain, leaking)]
    assert most[1] * 8 <= 125  # 8 blocks for a prompt
    assert most[0] > most[1]
    assert min(each.kv_blocks_used or 0 for each in _pages(leaking) if each.scrape_start > 12) >= 375


def test_a_leak_keeps_requests_waiting_for_blocks() -> None:
    plain, leaking = _run(), _run(leak=LEAK)
    assert AdmissionLimit.KV not in {each.limit for each in plain.admissions}
    waits = [each for each in leaking.admissions if each.waiting > 2]
    assert waits
    assert {each.limit for each in waits} == {AdmissionLimit.KV}
    assert waits[0].at > LEAK.start


def test_a_request_that_no_longer_fits_waits_until_the_client_gives_up() -> None:
    leak = KvLeak(start=1.0, rate=1000.0, floor=0.02)
    run = _run(leak=leak, drain_timeout=10.0)
    assert {each.status for each in run.records} == {RequestStatus.OK, RequestStatus.CANCELLED}
    assert {each.done_at for each in run.records if each.status is RequestStatus.CANCELLED} == {40.0}


def test_each_replica_leaks() -> None:
    run = _run(leak=LEAK, replicas=2)
    last = {each.replica: each.kv_blocks_used for each in run.replica_samples}
    assert last == {0: 375, 1: 375}


@settings(deadline=None)
@given(
    start=st.floats(0.0, 50.0), rate=st.floats(0.01, 2000.0), floor=st.floats(0.01, 0.99), total=st.integers(1, 3000)
)
def test_the_losses_add_up_to_the_blocks_above_the_floor(start: float, rate: float, floor: float, total: int) -> None:
    leak = KvLeak(start=start, rate=rate, floor=floor)
    schedule, lost, times = FaultSchedule(leak, (), blocks=total), 0, [start]
    while (at := schedule.next_at) < start + 20.0:
        loss = schedule.take()
        assert isinstance(loss, int)
        assert loss > 0
        lost += loss
        times.append(at)
        assert lost == leak.lost_by(at, total)
    assert all(before < after for before, after in pairwise(times))
    assert lost <= total - floor * total + 1e-9
    assert lost == pytest.approx(leak.lost_by(start + 20.0, total), abs=rate * 0.2 + 1)


# --- pauses ---


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_happens_in_a_pause_and_all_requests_are_served(engine: str) -> None:
    run = _run(pauses=PAUSES, engine_profile=engine, workload=VARIED)
    assert {each.status for each in run.records} == {RequestStatus.OK}
    decided = [each.at for each in run.admissions]
    for pause in PAUSES:
        assert [at for at in decided if pause.start < at < pause.until - 1e-9] == []
        tokens = [
            tick.client.output_tokens for tick in run.ticks if pause.start <= tick.start < tick.end <= pause.until
        ]
        assert tokens
        assert set(tokens) == {0}
        assert [tick for tick in run.ticks if pause.start <= tick.start < pause.until and tick.client.sent]


def test_what_runs_in_a_pause_ends_as_much_later() -> None:
    load = StageConfig(request_rate=50.0, num_prompts=20)
    plain, paused = (
        _times(_run(load, kv_blocks=2500, pauses=each)) for each in ((), (EnginePause(start=2.0, seconds=1.5),))
    )
    before = [ends for ends in plain if (ends[1] or 0.0) < 2.0]
    after = [(ends, late) for ends, late in zip(plain, paused, strict=True) if (ends[1] or 0.0) > 2.0]
    assert paused[: len(before)] == before
    assert after
    for (first, done), (late_first, late_done) in after:
        assert (late_first or 0.0) - (first or 0.0) == pytest.approx(1.5 if (first or 0.0) > 2.0 else 0.0, abs=1e-9)
        assert (late_done or 0.0) - (done or 0.0) == pytest.approx(1.5, abs=1e-9)


def test_a_request_at_a_paused_idle_engine_is_admitted_after_the_pause() -> None:
    load = StageConfig(request_rate=1.0, num_prompts=3)
    work = WorkloadConfig(arrivals="constant")
    pause = EnginePause(start=0.0, seconds=0.5)
    plain, paused = (_times(_run(load, workload=work, pauses=each)) for each in ((), (pause,)))
    first = min(each.sent or 0.0 for each in _run(load, workload=work).records)
    assert (paused[0][0] or 0.0) - (plain[0][0] or 0.0) == pytest.approx(max(0.5 - first, 0.0), abs=1e-9)


def test_the_metrics_page_of_a_pause_is_that_of_its_start() -> None:
    run = _run(pauses=PAUSES)
    within = [each for each in _pages(run) if 5.0 < each.scrape_start < 7.0]
    shown = {(each.running, each.waiting, each.kv_blocks_used, each.generation_tokens_total) for each in within}
    assert len(within) > 3
    assert len(shown) == 1
    assert len({each.scrape_start for each in within}) > 3
    assert shown.pop()[1] == 0
    after = next(each for each in run.admissions if each.at >= 7.0)
    assert after.running > (within[0].running or 0)


def test_the_gpu_of_a_paused_engine_does_nothing() -> None:
    run = _run(pauses=PAUSES, gpus=GpuTelemetry())
    within = [tick.gpus[0].utilisation for tick in run.ticks if 5.0 <= tick.start < tick.end <= 7.0]
    before = [tick.gpus[0].utilisation or 0.0 for tick in run.ticks if 4.0 <= tick.start < tick.end <= 5.0]
    assert set(within) == {0.0}
    assert min(before) > 0.5


def test_a_leak_goes_on_in_a_pause_and_takes_its_blocks_afterwards() -> None:
    run = _run(leak=LEAK, pauses=PAUSES)
    assert {each.status for each in run.records} == {RequestStatus.OK}
    assert _pages(run)[-1].kv_blocks_used == 375


# --- the plan ---


@pytest.mark.parametrize(
    "leak",
    [{"start": -1.0}, {"start": float("nan")}, {"rate": 0.0}, {"rate": float("inf")}, {"floor": 0.0}, {"floor": 1.0}],
)
def test_a_leak_that_makes_no_sense_is_refused(leak: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a leak of KV blocks needs a start"):
        KvLeak(**{"start": 1.0, "rate": 5.0, "floor": 0.5, **leak})


@pytest.mark.parametrize(("start", "seconds"), [(-1.0, 1.0), (float("inf"), 1.0), (1.0, 0.0), (1.0, float("nan"))])
def test_a_pause_that_makes_no_sense_is_refused(start: float, seconds: float) -> None:
    with pytest.raises(ValueError, match="a pause needs a start"):
        EnginePause(start=start, seconds=seconds)


def test_pauses_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the pause at 5\.0 s begins before that of 12\.0 s has ended"):
        _run(pauses=PAUSES[::-1])
