"""A stage without a request names the reason: it ends before its first arrival."""

from __future__ import annotations

from servetop.core.config import StageConfig
from servetop.workload.arrivals.arrival_spec import seeded_arrivals
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule
from tests.workload.stages.test_schedule import FOUR, TWO, schedule_of, times


def test_a_stage_that_ends_before_its_first_arrival_says_when_that_is_due() -> None:
    slow = StageConfig(request_rate=0.01, duration=1.0)
    late, again = (seeded_arrivals(burstiness=1.0, seed=(3,)) for _ in range(2))
    plan = LoadPlan(segments=((0, slow), (1, FOUR)), begin=10.0, drain_timeout=5.0)
    schedule = Schedule(plan, arrivals=lambda _: late, now=0.0)
    first = next(again(0.01).due_times())
    assert first > 1.0
    assert 0 not in {stage for stage, _ in times(schedule, 20.0)}
    (warning,) = schedule.warnings
    assert warning == (
        f"no request was due within 1 s at 0.01 req/s: the first one is due after {first:.3g} s; "
        "set a longer --duration"
    )


def test_a_stage_with_a_request_or_that_is_ended_by_hand_has_no_such_warning() -> None:
    schedule = schedule_of(TWO, StageConfig(request_rate=0.01, duration=99.0))
    times(schedule, 0.9)
    schedule.stop(0.9)
    assert schedule.warnings == []
