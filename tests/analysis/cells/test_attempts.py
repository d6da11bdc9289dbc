"""Whole, cut-short and failed attempts at a cell are told apart by the rows of their stages."""

from __future__ import annotations

import dataclasses

import pytest

from servetop.analysis.cells.attempts import RESUMED, AttemptState, StageHistory, StageTally, cell_attempts
from servetop.core.events import Action, Command, Note, RunEnd, Severity, StageChange

WHOLE, CUT_SHORT, FAILED = AttemptState.WHOLE, AttemptState.CUT_SHORT, AttemptState.FAILED
PLANNED = RunEnd(at=9.0, exit_code=0, reason="")


def stage(index: int, at: float, *, batch: int | None = None, length: float | None = None) -> StageChange:
    return StageChange(
        at=at,
        index=index,
        label="",
        request_rate=8.0,
        max_concurrency=None,
        max_num_seqs=batch or index,
        duration=length,
    )


def seam(at: float) -> Note:
    return Note(at=at, severity=Severity.INFO, source=RESUMED, text="")


STAGES = [stage(0, 1.0), stage(1, 2.0), stage(2, 4.0), stage(3, 6.0)]


def states(history: StageHistory) -> list[AttemptState]:
    return [each.state for each in cell_attempts(history).values()]


@pytest.mark.parametrize(
    ("resumed", "end", "whole"),
    [
        ([], PLANNED, [0, 1, 2, 3]),
        ([], RunEnd(at=9.0, exit_code=130, reason="interrupted"), [0, 1, 2]),
        ([], None, [0, 1, 2]),
        ([], RunEnd(at=9.0, exit_code=99, reason="too slow"), [0, 1, 2, 3]),
        ([], RunEnd(at=9.0, exit_code=98, reason="too few requests"), [0, 1, 2, 3]),
        ([], RunEnd(at=9.0, exit_code=0, reason="stopped early"), [0, 1, 2]),
        ([3.0], PLANNED, [0, 2, 3]),
        ([3.0, 5.0], None, [0]),
    ],
)
def test_without_a_planned_length_a_stage_is_whole_if_another_follows_in_the_same_session(
    resumed: list[float], end: RunEnd | None, whole: list[int]
) -> None:
    found = cell_attempts(StageHistory(stages=STAGES, tallies={}, notes=[seam(at) for at in resumed], end=end))
    assert [index for index, each in found.items() if each.state is WHOLE] == whole


def test_a_stage_whose_requests_all_ended_before_the_kill_is_whole() -> None:
    cell = dataclasses.replace(stage(0, 1.0), num_prompts=24)
    ended = StageHistory(stages=[cell], tallies={0: StageTally(ok=24, until=3.0)}, notes=[seam(3.0)])
    assert states(ended) == [WHOLE]
    assert states(dataclasses.replace(ended, tallies={0: StageTally(ok=23, left=1, until=3.0)})) == [CUT_SHORT]


@pytest.mark.parametrize(("until", "left", "state"), [(13.0, 0, WHOLE), (13.0, 2, CUT_SHORT), (12.0, 0, CUT_SHORT)])
def test_a_timed_stage_is_whole_after_its_time_when_nothing_is_left(
    until: float, left: int, state: AttemptState
) -> None:
    tally = StageTally(ok=90, left=left, until=until)
    history = StageHistory(stages=[stage(0, 1.0, length=12.0)], tallies={0: tally}, notes=[seam(until)])
    assert states(history) == [state]


def test_the_end_of_the_run_decides_nothing_about_a_cell_that_is_whole_by_itself() -> None:
    failed_run = RunEnd(at=20.0, exit_code=1, reason="6 of 18 requests failed")
    tally = StageTally(ok=90, until=14.0)
    history = StageHistory(stages=[stage(0, 1.0, length=12.0)], tallies={0: tally}, end=failed_run)
    assert states(history) == [WHOLE]


@pytest.mark.parametrize(
    ("tally", "state"),
    [
        (StageTally(failed=6), FAILED),
        (StageTally(ok=98, failed=2), FAILED),
        (StageTally(ok=99, failed=1), WHOLE),
    ],
)
def test_a_cell_failed_when_more_of_its_requests_failed_than_allowed(tally: StageTally, state: AttemptState) -> None:
    assert states(StageHistory(stages=STAGES[:1], tallies={0: tally}, end=PLANNED)) == [state]


def test_a_cell_whose_engine_did_not_start_failed_for_that_reason() -> None:
    row = dataclasses.replace(stage(0, 1.0), failure="vLLM did not start: out of memory")
    found = cell_attempts(StageHistory(stages=[row, stage(1, 2.0)], tallies={}, end=PLANNED))
    assert (found[0].state, found[0].reason) == (FAILED, "vLLM did not start: out of memory")
    assert found[1].state is WHOLE


def test_other_attempts_do_not_count_where_a_whole_one_exists() -> None:
    rows = [stage(0, 1.0, batch=8), stage(1, 2.0, batch=32), stage(2, 4.0, batch=32), stage(3, 6.0, batch=64)]
    found = cell_attempts(StageHistory(stages=rows, tallies={}, notes=[seam(3.0), seam(7.0)]))
    assert [each.state for each in found.values()] == [WHOLE, CUT_SHORT, WHOLE, CUT_SHORT]
    assert [each.counts for each in found.values()] == [True, False, True, True]


def test_a_stage_that_a_key_ended_is_cut_short_and_the_one_after_it_is_not() -> None:
    command = Command(id=1, at=1.9, action=Action.NEXT_STAGE, applied_at=2.0)
    assert states(StageHistory(stages=STAGES, tallies={}, commands=[command], end=PLANNED)) == [
        CUT_SHORT, WHOLE, WHOLE, WHOLE,
    ]  # fmt: skip


def test_a_last_stage_that_a_key_stopped_is_cut_short_whatever_the_thresholds_say() -> None:
    command = Command(id=1, at=6.9, action=Action.STOP, applied_at=7.0)
    end = RunEnd(at=9.0, exit_code=99, reason="too slow")
    assert states(StageHistory(stages=STAGES, tallies={}, commands=[command], end=end)) == [
        WHOLE, WHOLE, WHOLE, CUT_SHORT,
    ]  # fmt: skip


def test_two_whole_attempts_at_one_cell_both_count() -> None:
    rows = [stage(0, 1.0, batch=8), stage(1, 2.0, batch=8)]
    found = cell_attempts(StageHistory(stages=rows, tallies={}, end=PLANNED))
    assert [each.counts for each in found.values()] == [True, True]


def test_of_a_cell_that_failed_in_several_sessions_the_last_result_counts() -> None:
    reasons = ("out of memory", "unknown flag", "killed")
    rows = [dataclasses.replace(stage(each, each * 2.0, batch=8), failure=reasons[each]) for each in range(3)]
    other = dataclasses.replace(stage(3, 6.0, batch=16), failure="out of memory")
    found = cell_attempts(StageHistory(stages=[*rows, other], tallies={}, notes=[seam(1.5), seam(3.5)]))
    assert [(each.state, each.counts) for each in found.values()] == [
        (FAILED, False), (FAILED, False), (FAILED, True), (FAILED, True),
    ]  # fmt: skip
    assert [each.reason for each in found.values() if each.counts] == ["killed", "out of memory"]
