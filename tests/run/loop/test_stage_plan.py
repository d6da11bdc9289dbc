"""Segments of a plan, and stages that are repeated under new numbers."""

from __future__ import annotations

import pytest

from servetop.core.config import RunConfig, StageConfig
from servetop.run.loop.stage_plan import EngineNeeds, FreshStarts, Segment, StagePlan, segments, with_other_batch

STAGES = tuple(
    StageConfig(request_rate=rate, max_num_seqs=batch, num_prompts=1)
    for rate, batch in ((1.0, 64), (2.0, 64), (3.0, 128), (4.0, 64))
)


def rates(found: list[Segment]) -> list[tuple[int | None, list[tuple[int, float]]]]:
    """Batch size of each segment, with the number and the rate of its stages."""
    return [(each.max_num_seqs, [(index, stage.request_rate) for index, stage in each.stages]) for each in found]


def test_a_segment_ends_where_the_batch_size_changes() -> None:
    found = segments(STAGES, first_index=5)
    assert rates(found) == [(64, [(5, 1.0), (6, 2.0)]), (128, [(7, 3.0)]), (64, [(8, 4.0)])]
    assert segments(()) == []


def test_another_batch_size_replaces_that_of_the_current_stage_only() -> None:
    assert [stage.max_num_seqs for stage in with_other_batch(STAGES, 32)] == [32, 32, 128, 32]
    assert with_other_batch((), 32) == []


def test_repeated_stages_get_numbers_that_were_never_used() -> None:
    plan = StagePlan(STAGES, first_index=0)
    assert rates(plan.again(1, max_num_seqs=32)) == [(32, [(4, 2.0)]), (128, [(5, 3.0)]), (32, [(6, 4.0)])]
    assert rates(plan.before(5)) == [(32, [(7, 2.0)]), (128, [(8, 3.0)]), (32, [(9, 4.0)])]


def test_a_repetition_can_be_repeated() -> None:
    plan = StagePlan(STAGES[:2], first_index=3)
    assert rates(plan.before(4)) == [(64, [(5, 1.0), (6, 2.0)])]
    assert rates(plan.before(6)) == [(64, [(7, 1.0), (8, 2.0)])]


@pytest.mark.parametrize("stage", [0, -1])
def test_nothing_comes_before_the_first_stage_or_the_load(stage: int) -> None:
    assert StagePlan(STAGES, first_index=0).before(stage) == []


def test_going_back_from_a_repetition_leads_to_the_stage_before_it() -> None:
    plan = StagePlan([StageConfig(request_rate=rate, duration=9.0) for rate in (4.0, 8.0, 16.0)], first_index=0)
    found = [rates(plan.before(stage)) for stage in (2, 4, 5, 7)]
    assert found == [
        [(None, [(3, 8.0), (4, 16.0)])],
        [(None, [(5, 8.0), (6, 16.0)])],
        [(None, [(7, 4.0), (8, 8.0), (9, 16.0)])],
        [],
    ]


def test_a_changed_batch_size_stays_when_going_back() -> None:
    plan = StagePlan([StageConfig(request_rate=rate, duration=9.0) for rate in (4.0, 8.0, 16.0)], first_index=0)
    assert rates(plan.again(1, max_num_seqs=64)) == [(64, [(3, 8.0), (4, 16.0)])]
    assert rates(plan.before(4)) == [(64, [(5, 8.0), (6, 16.0)])]


def test_a_fresh_start_begins_a_segment_of_its_own_and_a_warm_up_is_none() -> None:
    warmup, *load = (StageConfig(num_prompts=1, warmup=not number) for number in range(4))

    def fresh(config: RunConfig) -> list[tuple[bool, list[int]]]:
        found = segments((warmup, *load), fresh=FreshStarts.of(config))
        return [(each.fresh, [index for index, _ in each.stages]) for each in found]

    assert fresh(RunConfig()) == [(False, [0, 1, 2, 3])]
    assert fresh(RunConfig(prefix_cache="cold")) == [(False, [0]), (True, [1, 2, 3])]
    assert fresh(RunConfig(prefix_cache="warm", drain_at_stages=True)) == [
        (False, [0]), (True, [1]), (True, [2]), (True, [3]),
    ]  # fmt: skip
    again = StagePlan(load, first_index=0, fresh=FreshStarts.FIRST)
    assert [each.fresh for each in again.before(2)] == [True]


def test_a_running_engine_meets_needs_that_name_no_other_batch_size() -> None:
    running = EngineNeeds(max_num_seqs=8, settings={"model": "m"})
    assert EngineNeeds(settings={"model": "m"}).met_by(running)
    assert running.met_by(running)
    assert not EngineNeeds(max_num_seqs=8).met_by(running)
    assert not EngineNeeds(max_num_seqs=16, settings={"model": "m"}).met_by(running)


def test_a_change_of_the_engine_is_told_in_words() -> None:
    flags = EngineNeeds(max_num_seqs=16, settings={"engine.args.kv-blocks": 64})
    assert flags.change_from(EngineNeeds(max_num_seqs=8)) == "max_num_seqs 8 → 16, as configured → --kv-blocks 64"
    assert EngineNeeds(settings={"model": "m"}).change_from(flags) == "--kv-blocks 64 → m"


def test_each_repeat_begins_a_segment_with_a_start_of_its_own_if_the_engine_restarts_between_repeats() -> None:
    stages = [StageConfig(request_rate=rate, num_prompts=1, repeat=repeat) for repeat in (0, 1) for rate in (4.0, 8.0)]
    assert [each.start for each in segments(stages)] == [None]
    found = segments(stages, restarts=True)
    assert [(each.start, [index for index, _ in each.stages]) for each in found] == [(0, [0, 1]), (1, [2, 3])]
    first, second = (each.needs for each in found)
    assert second.met_by(second)
    assert not second.met_by(first)
    assert first.of_any_start == second.of_any_start
    assert second.change_from(first) == "repeat 1 → 2"
    again = StagePlan(stages, first_index=0, restarts=True).before(3)
    assert [each.start for each in again] == [1]
