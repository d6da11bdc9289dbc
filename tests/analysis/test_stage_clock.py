"""The common clock of a run and its baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from servetop.analysis.series.stage_clock import StageClock, stage_clock, stage_spans
from servetop.core.events import StageChange

BOOT = StageChange(at=0.0, index=-1, label="starting", request_rate=None, max_concurrency=None, max_num_seqs=64)


def stages(boot: float, *loads: tuple[float, float], batch: int = 64) -> list[StageChange]:
    """The engine's start, then stages from (rate, seconds)."""
    changes, at = [BOOT], boot
    for index, (rate, seconds) in enumerate(loads):
        changes.append(replace(BOOT, at=at, index=index, request_rate=rate, max_num_seqs=batch))
        at += seconds
    return changes


def aligned(
    run: Sequence[StageChange], baseline: Sequence[StageChange], *, ends: tuple[float | None, float], same_plan: bool
) -> StageClock:
    return stage_clock(stage_spans(run, end=ends[0]), stage_spans(baseline, end=ends[1]), same_plan=same_plan)


def test_each_stage_begins_with_the_same_stage_of_the_baseline() -> None:
    run = stages(3.0, (4, 10), (8, 12), (12, 10))
    clock = aligned(run, stages(5.0, (4, 10), (8, 10), (12, 10)), ends=(35.0, 35.0), same_plan=True)
    assert clock.baseline_time(4.0) == pytest.approx(6.0)
    assert clock.baseline_time(14.0) == pytest.approx(16.0)
    assert math.isnan(clock.baseline_time(24.0)), "the baseline's second stage was over after 10 s"
    assert clock.baseline_time(26.0) == pytest.approx(26.0), "the third stage begins at 25 s in both"
    assert math.isnan(clock.baseline_time(2.0)), "before the load there is nothing to compare"


def test_the_time_at_which_a_stage_starts_belongs_to_the_one_before() -> None:
    run, baseline = stages(0.0, (4, 10), (8, 10)), stages(2.0, (4, 10), (8, 10))
    clock = aligned(run, baseline, ends=(20.0, 22.0), same_plan=True)
    np.testing.assert_allclose(clock.baseline_times(np.array([9.75, 10.0, 10.25])), [11.75, 12.0, 12.25])


def test_plans_that_differ_are_aligned_by_their_loads_and_batch_sizes() -> None:
    run, baseline = stages(1.0, (8, 10), (24, 10)), stages(1.0, (4, 10), (8, 10), (16, 10), (24, 10))
    clock = aligned(run, baseline, ends=(21.0, 41.0), same_plan=False)
    assert clock.baseline_time(2.0) == pytest.approx(12.0)
    assert clock.baseline_time(12.0) == pytest.approx(32.0)


def test_another_batch_size_may_be_the_change_itself() -> None:
    run, baseline = stages(1.0, (4, 10), (8, 10), batch=32), stages(1.0, (8, 10), batch=64)
    clock = aligned(run, baseline, ends=(21.0, 11.0), same_plan=False)
    assert math.isnan(clock.baseline_time(5.0))
    assert clock.baseline_time(12.0) == pytest.approx(2.0)


def test_without_a_common_load_both_clocks_start_with_the_load() -> None:
    clock = aligned(stages(2.0, (4, 10)), stages(6.0, (5, 10), (6, 5)), ends=(12.0, 21.0), same_plan=False)
    assert clock.baseline_time(3.0) == pytest.approx(7.0)
    assert clock.baseline_time(16.0) == pytest.approx(20.0)


def test_the_newest_stage_of_a_live_run_shows_what_came_next() -> None:
    run, baseline = stages(1.0, (4, 10)), stages(1.0, (4, 10), (8, 10))
    clock = aligned(run, baseline, ends=(None, 21.0), same_plan=True)
    assert clock.baseline_time(15.0) == pytest.approx(15.0)
    assert math.isnan(clock.baseline_time(22.0))


def test_a_run_without_a_load_has_no_counterpart() -> None:
    clock = aligned([BOOT], stages(1.0, (4, 10)), ends=(None, 11.0), same_plan=False)
    assert np.isnan(clock.baseline_times(np.array([0.0, 5.0]))).all()
    assert stage_spans([]) == []


def test_a_repeated_stage_has_the_repetition_as_its_counterpart() -> None:
    again = replace(BOOT, at=21.0, index=0, request_rate=4.0)
    run = [*stages(1.0, (4, 10), (8, 10)), again]
    clock = aligned(run, [*stages(3.0, (4, 10), (8, 10)), replace(again, at=23.0)], ends=(31.0, 33.0), same_plan=True)
    assert clock.baseline_time(25.0) == pytest.approx(27.0)
