"""The schedule: due times over all stages, and the effect of commands. No clock, no network."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import StageConfig
from servetop.core.events import Action, Command
from servetop.loadgen.sender.live_commands import apply_command
from servetop.workload.arrivals.arrival_spec import seeded_arrivals
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule

EVEN = seeded_arrivals(burstiness=math.inf, seed=(0,))


def schedule_of(*stages: StageConfig, begin: float = 0.0, drain: bool = False) -> Schedule:
    plan = LoadPlan(segments=tuple(enumerate(stages)), begin=begin, drain_at_stages=drain, drain_timeout=5.0)
    return Schedule(plan, arrivals=lambda _: EVEN, now=0.0)


def tell(schedule: Schedule, action: Action, at: float, value: float | None = None) -> str | None:
    return apply_command(schedule, Command(id=1, at=at, action=action, value=value), at)


def times(schedule: Schedule, until: float) -> list[tuple[int, float]]:
    return [(due.stage, due.at) for due in schedule.due(until)]


TWO = StageConfig(request_rate=2.0, duration=1.0)
FOUR = StageConfig(request_rate=4.0, duration=1.0)


def test_stages_join_seamlessly_by_absolute_times() -> None:
    schedule = schedule_of(TWO, FOUR, begin=10.0)
    assert times(schedule, 9.99) == []
    assert schedule.wake_at() == 10.0
    assert times(schedule, 20.0) == [(0, 10.0), (0, 10.5), (1, 11.0), (1, 11.25), (1, 11.5), (1, 11.75)]
    assert [(change.index, change.at, change.label) for change in schedule.changes] == [
        (0, 10.0, "2 req/s"),
        (1, 11.0, "4 req/s"),
    ]
    assert schedule.draining_since == 12.0
    assert not schedule.finished
    schedule.drained(13.0)
    assert schedule.finished
    assert schedule.wake_at() == math.inf


def test_a_late_call_gives_every_request_its_own_due_time() -> None:
    schedule = schedule_of(TWO)
    assert times(schedule, 0.0) == [(0, 0.0)]
    assert schedule.wake_at() == 0.5
    assert times(schedule, 100.0) == [(0, 0.5)]


def test_a_plan_with_a_past_start_starts_immediately() -> None:
    plan = LoadPlan(segments=((0, TWO),), begin=1.0)
    assert [due.at for due in Schedule(plan, arrivals=lambda _: EVEN, now=7.0).due(7.6)] == [7.0, 7.5]


def test_a_stage_can_end_by_its_number_of_prompts() -> None:
    schedule = schedule_of(StageConfig(request_rate=10.0, num_prompts=3), FOUR)
    assert times(schedule, 0.5) == [(0, 0.0), (0, 0.1), (0, 0.2), (1, 0.2), (1, 0.45)]


def test_an_infinite_rate_without_a_limit_is_all_at_once() -> None:
    schedule = schedule_of(StageConfig(num_prompts=3), begin=2.0)
    assert times(schedule, 2.0) == [(0, 2.0)] * 3
    assert schedule.draining_since == 2.0


def test_a_closed_loop_sends_a_request_for_every_free_slot() -> None:
    schedule = schedule_of(StageConfig(max_concurrency=2, num_prompts=3), begin=2.0)
    assert schedule.take_slot(1.0) is None
    assert times(schedule, 2.1) == []
    slots = [schedule.take_slot(at) for at in (0.0, 0.0, 2.6, 2.7)]
    assert [slot.at if slot else None for slot in slots] == [2.0, 2.0, 2.6, None]
    assert schedule.wake_at() == 2.6
    assert times(schedule, 2.7) == []
    assert schedule.draining_since == 2.6


def test_a_closed_loop_sends_nothing_after_its_duration() -> None:
    schedule = schedule_of(StageConfig(max_concurrency=2, duration=1.0))
    schedule.due(0.5)
    assert schedule.take_slot(1.0) is None


def test_draining_between_stages_delays_the_next_one() -> None:
    schedule = schedule_of(TWO, FOUR, drain=True)
    assert times(schedule, 1.5) == [(0, 0.0), (0, 0.5)]
    assert schedule.drain_deadline == 6.0
    assert schedule.wake_at() == math.inf
    schedule.drained(2.25)
    assert times(schedule, 2.6) == [(1, 2.25), (1, 2.5)]


def test_holding_continues_the_load_and_keeps_the_stage_from_ending() -> None:
    schedule = schedule_of(TWO, FOUR)
    schedule.due(0.0)
    assert tell(schedule, Action.HOLD_STAGE, 0.25) == "holding at 2 req/s"
    assert times(schedule, 3.1) == [(0, 0.5), (0, 1.0), (0, 1.5), (0, 2.0), (0, 2.5), (0, 3.0)]
    assert tell(schedule, Action.CONTINUE_STAGES, 3.25) == "the stages continue"
    assert times(schedule, 4.0) == [(0, 3.5), (1, 4.0)]
    assert schedule.changes[-1].at == 4.0


def test_the_reply_to_holding_is_the_load_in_force() -> None:
    steered = schedule_of(TWO)
    steered.due(0.0)
    tell(steered, Action.SET_RATE, 0.1, 10.21)
    assert tell(steered, Action.HOLD_STAGE, 0.25) == "holding at 10.2 req/s"
    ramp = schedule_of(StageConfig(request_rate=20.0, ramp_from=4.0, duration=8.0))
    ramp.due(2.0)
    assert tell(ramp, Action.HOLD_STAGE, 2.0) == "holding at 8 req/s"
    closed = schedule_of(StageConfig(max_concurrency=3, duration=1.0))
    closed.due(0.0)
    assert tell(closed, Action.HOLD_STAGE, 0.25) == "holding at 3 concurrent requests"


def test_requests_of_a_held_stage_do_not_count_towards_num_prompts() -> None:
    schedule = schedule_of(StageConfig(request_rate=2.0, num_prompts=2))
    schedule.due(0.0)
    tell(schedule, Action.HOLD_STAGE, 0.1)
    assert len(times(schedule, 1.6)) == 3
    tell(schedule, Action.CONTINUE_STAGES, 1.6)
    assert times(schedule, 9.0) == [(0, 2.0)]


def test_pausing_delays_everything_by_the_length_of_the_pause() -> None:
    schedule = schedule_of(TWO, FOUR)
    schedule.due(0.0)
    assert tell(schedule, Action.PAUSE_LOAD, 0.25) is not None
    assert times(schedule, 8.0) == []
    assert schedule.wake_at() == math.inf
    tell(schedule, Action.RESUME_LOAD, 10.25)
    assert times(schedule, 11.3) == [(0, 10.5), (1, 11.0), (1, 11.25)]


def test_a_new_rate_applies_at_once_and_keeps_the_duration() -> None:
    schedule = schedule_of(TWO, FOUR)
    schedule.due(0.0)
    assert tell(schedule, Action.SET_RATE, 0.1, 10.0) == "sending 10 requests/s"
    found = times(schedule, 1.0)
    assert [at for _, at in found] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert found[-1][0] == 1


def test_a_rate_set_during_a_pause_applies_from_its_end() -> None:
    schedule = schedule_of(TWO)
    schedule.due(0.0)
    tell(schedule, Action.PAUSE_LOAD, 0.25)
    tell(schedule, Action.SET_RATE, 1.0, 8.0)
    tell(schedule, Action.RESUME_LOAD, 2.25)
    assert times(schedule, 2.4) == [(0, 2.25), (0, 2.375)]


def test_next_stage_ends_the_current_one() -> None:
    schedule = schedule_of(TWO, FOUR)
    schedule.due(0.0)
    assert tell(schedule, Action.NEXT_STAGE, 0.3) == "stage ended, 1 remaining"
    assert times(schedule, 0.6) == [(1, 0.3), (1, 0.55)]
    assert tell(schedule, Action.NEXT_STAGE, 0.6) == "this is the last stage"


def test_stopping_ends_all_stages() -> None:
    schedule = schedule_of(TWO, FOUR)
    schedule.due(0.0)
    schedule.stop(0.2)
    assert times(schedule, 9.0) == []
    schedule.drained(0.3)
    assert schedule.finished


@pytest.mark.parametrize(
    ("action", "value", "message"),
    [
        (Action.SET_RATE, 0.0, "must be above 0"),
        (Action.SET_RATE, None, "must be above 0"),
        (Action.SET_RATE, math.nan, "must be above 0"),
        (Action.SET_RATE, math.inf, "needs a concurrency limit"),
        (Action.SET_RATE, 1e9, "at or below"),
        (Action.SET_CONCURRENCY, -3.0, "must be 1 or more"),
        (Action.SET_CONCURRENCY, math.nan, "must be 1 or more"),
        (Action.SET_CONCURRENCY, 8.0, "at most 8 concurrent requests"),
        (Action.SET_CONCURRENCY, 0.0, "no concurrency limit"),
        (Action.CONTINUE_STAGES, None, "not held"),
        (Action.RESUME_LOAD, None, "not paused"),
    ],
)
def test_every_command_has_a_reply(action: Action, value: float | None, message: str) -> None:
    schedule = schedule_of(TWO)
    schedule.due(0.0)
    reply = tell(schedule, action, 0.1, value)
    assert reply is not None
    assert message in reply


def test_a_closed_loop_keeps_a_limit_or_gets_a_rate_first() -> None:
    schedule = schedule_of(StageConfig(max_concurrency=2, duration=9.0))
    schedule.due(0.0)
    assert (
        tell(schedule, Action.SET_CONCURRENCY, 0.1, 0) == "an infinite rate needs a concurrency limit: set a rate first"
    )
    tell(schedule, Action.SET_RATE, 0.2, 5.0)
    assert tell(schedule, Action.SET_CONCURRENCY, 0.3, 0) == "no concurrency limit"


def test_commands_without_a_stage_have_a_reply() -> None:
    schedule = schedule_of(TWO, begin=5.0)
    assert tell(schedule, Action.HOLD_STAGE, 1.0) == "no stage is running"
    assert tell(schedule, Action.NEXT_STAGE, 1.0) == "no stage is running"
    assert tell(schedule, Action.MARK, 1.0) is None


def test_connections_are_opened_for_requests_due_soon() -> None:
    closed = schedule_of(StageConfig(max_concurrency=48, duration=1.0), begin=1.0)
    assert closed.connections_wanted(0) == 48
    closed.due(1.0)
    assert closed.connections_wanted(48) == 0
    opened = schedule_of(StageConfig(request_rate=400.0, max_concurrency=20, duration=1.0))
    opened.due(0.0)
    assert opened.connections_wanted(0) == 8
    assert opened.connections_wanted(15) == 5


stages = st.builds(
    StageConfig,
    request_rate=st.sampled_from([1.0, 3.0, 10.0]),
    duration=st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.0])),
    num_prompts=st.integers(1, 8),
)
actions = st.sampled_from(
    [Action.HOLD_STAGE, Action.CONTINUE_STAGES, Action.PAUSE_LOAD, Action.RESUME_LOAD, Action.NEXT_STAGE]
)


@given(
    st.lists(stages, min_size=1, max_size=4),
    st.lists(st.tuples(st.floats(0.0, 1.0), actions), max_size=12),
    st.booleans(),
)
def test_due_times_ascend_and_the_plan_ends_after_any_commands(
    plan: list[StageConfig], steps: list[tuple[float, Action]], drain: bool
) -> None:
    schedule = schedule_of(*plan, drain=drain)
    now, found = 0.0, []
    for wait, action in steps:
        now += wait
        found += schedule.due(now)
        tell(schedule, action, now)
        schedule.drained(now)
    tell(schedule, Action.CONTINUE_STAGES, now)
    tell(schedule, Action.RESUME_LOAD, now)
    while not schedule.finished:
        now += 0.5
        assert now < 200
        found += schedule.due(now)
        schedule.drained(now)
    assert [due.at for due in found] == sorted(due.at for due in found)
    assert [change.index for change in schedule.changes] == list(range(len(plan)))


def test_a_loop_is_closed_at_a_concurrency_and_opened_at_a_rate() -> None:
    schedule = schedule_of(TWO)
    schedule.due(0.0)
    assert "4 concurrent requests" in str(tell(schedule, Action.CLOSE_LOOP, 0.1, 4))
    assert times(schedule, 0.5) == []
    assert schedule.take_slot(0.5) is not None
    assert "sending 8 requests/s" in str(tell(schedule, Action.OPEN_LOOP, 0.5, 8.0))
    assert times(schedule, 0.8) == [(0, 0.5), (0, 0.625), (0, 0.75)]
    assert schedule.take_slot(0.8) is None


@pytest.mark.parametrize("value", [None, 0.0, -1.0, float("inf"), float("nan")])
def test_a_loop_without_a_valid_value_is_unchanged(value: float | None) -> None:
    schedule = schedule_of(TWO)
    schedule.due(0.0)
    assert "needs" in str(tell(schedule, Action.CLOSE_LOOP, 0.1, value))
    assert "needs" in str(tell(schedule, Action.OPEN_LOOP, 0.1, value))
    assert schedule.take_slot(0.1) is None
