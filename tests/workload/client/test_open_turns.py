"""Turns of conversations: when they are due, for which stage, and what ends them."""

import itertools
import math

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.workload.build import arrivals_of
from servetop.workload.client.open_turns import DueTurn, OpenTurns
from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule


def schedule_of(*stages: StageConfig) -> Schedule:
    plan = LoadPlan(segments=tuple(enumerate(stages)), begin=0.0, drain_timeout=5.0)
    return Schedule(plan, arrivals=arrivals_of(WorkloadConfig()), now=0.0)


def turns_of(skipped: SkippedRows, *pauses: float) -> OpenTurns[str]:
    turns: OpenTurns[str] = OpenTurns(skipped)
    turns.think(itertools.cycle(pauses))
    return turns


def test_a_turn_is_due_after_its_pause_as_a_request_of_the_current_stage() -> None:
    schedule = schedule_of(StageConfig(max_concurrency=2, duration=2.0), StageConfig(max_concurrency=2, duration=9.0))
    turns = turns_of(SkippedRows(), 3.0, 1.0)
    schedule.due(0.0)
    turns.add("slow", after=0.5, stage=0, number=1)
    turns.add("quick", after=0.5, stage=0, number=2)
    assert (turns.thinking, turns.wake_at) == (2, 1.5)
    assert list(turns.due(1.5, schedule)) == [DueTurn(0, 1.5, "quick")]
    schedule.due(4.0)
    assert list(turns.due(4.0, schedule)) == [DueTurn(1, 3.5, "slow")]
    assert (turns.thinking, turns.wake_at) == (0, math.inf)


def test_of_turns_that_are_due_at_once_the_lowest_number_is_first() -> None:
    schedule = schedule_of(StageConfig(max_concurrency=2, duration=2.0))
    turns = turns_of(SkippedRows(), 0.0)
    schedule.due(0.0)
    for number in (7, 3, 5):
        turns.add(str(number), after=1.0, stage=0, number=number)
    assert [turn.prompt for turn in turns.due(1.0, schedule)] == ["3", "5", "7"]


def test_a_stage_that_is_cut_off_ends_and_counts_its_conversations() -> None:
    schedule, skipped = schedule_of(StageConfig(max_concurrency=2, duration=2.0)), SkippedRows()
    turns = turns_of(skipped, 1.0)
    schedule.due(0.0)
    turns.add("next", after=1.5, stage=0, number=1)
    schedule.due(2.5)
    assert list(turns.due(2.5, schedule)) == []
    assert (turns.thinking, skipped.cut) == (0, 1)


def test_a_turn_restarts_the_timeout_of_a_drain() -> None:
    schedule = schedule_of(StageConfig(max_concurrency=1, num_prompts=1))
    turns = turns_of(SkippedRows(), 3.0)
    schedule.due(0.0)
    schedule.take_slot(0.0)
    schedule.due(0.5)
    turns.add("next", after=0.5, stage=0, number=1)
    assert list(turns.due(0.5, schedule)) == []
    assert schedule.drain_deadline == 8.5
    assert list(turns.due(3.5, schedule)) == [DueTurn(0, 3.5, "next")]
