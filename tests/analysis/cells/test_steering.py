"""A stage whose load was changed by commands is not taken for the planned one."""

from __future__ import annotations

import math

import pytest

from servetop.analysis.cells.attempts import StageHistory, cell_attempts
from servetop.analysis.cells.steering import steering
from servetop.core.events import Action, Command, StageChange

STAGE = StageChange(at=10.0, index=0, label="3 req/s", request_rate=3.0, max_concurrency=24, max_num_seqs=32)
NEXT = StageChange(at=20.0, index=1, label="3 req/s", request_rate=3.0, max_concurrency=24, max_num_seqs=32)


def command(action: Action, value: float | None = None, *, at: float = 12.0, reply: str = "") -> Command:
    return Command(id=1, at=at - 0.1, action=action, value=value, applied_at=at, reply=reply)


@pytest.mark.parametrize(
    ("commands", "found"),
    [
        ([], ""),
        ([command(Action.SET_RATE, 27.9)], "rate 3 to 27.9 req/s"),
        ([command(Action.SET_RATE, 27.9), command(Action.SET_RATE, 3.0, at=19.0)], "rate 3 to 27.9 req/s"),
        ([command(Action.SET_RATE, 0.5), command(Action.SET_RATE, 3.1, at=19.0)], "rate 3 to 0.5 req/s"),
        ([command(Action.SET_RATE, 3.1)], ""),
        ([command(Action.SET_RATE, math.inf)], "rate 3 to unlimited req/s"),
        ([command(Action.SET_CONCURRENCY, 8.0)], "concurrency limit 24 to 8"),
        ([command(Action.SET_CONCURRENCY, 0.0)], "concurrency limit 24 to unlimited"),
        ([command(Action.OPEN_LOOP, 3.0)], "concurrency limit 24 to unlimited"),
        ([command(Action.CLOSE_LOOP, 24.0)], "rate 3 to unlimited req/s"),
        ([command(Action.SET_MAX_NUM_SEQS, 16.0, reply="batch size 16")], "batch size 32 to 16"),
        ([command(Action.BURST, 50.0)], "burst"),
        ([command(Action.PAUSE_LOAD), command(Action.RESUME_LOAD), command(Action.PAUSE_LOAD)], "paused"),
        ([command(Action.SET_RATE, 6.0), command(Action.BURST, 5.0)], "rate 3 to 6 req/s, burst"),
    ],
)
def test_what_commands_changed_is_named_with_the_planned_load_first(commands: list[Command], found: str) -> None:
    assert steering(STAGE, commands, until=20.0) == found


@pytest.mark.parametrize(
    "each",
    [
        command(Action.SET_RATE, 27.9, at=9.0),
        command(Action.SET_RATE, 27.9, at=21.0),
        command(Action.SET_RATE, -1.0),
        command(Action.SET_RATE, 1e12),
        command(Action.SET_CONCURRENCY, 0.5),
        command(Action.CLOSE_LOOP, math.inf),
        command(Action.SET_MAX_NUM_SEQS, 16.0, reply="the batch size is already being changed"),
        command(Action.BURST, 0.0),
        command(Action.HOLD_STAGE),
        command(Action.MARK),
        Command(id=1, at=12.0, action=Action.SET_RATE, value=27.9),
    ],
)
def test_commands_that_were_refused_or_belong_to_another_stage_change_nothing(each: Command) -> None:
    assert steering(STAGE, [each], until=20.0) == ""


def test_a_steered_stage_is_no_attempt_at_the_planned_cell() -> None:
    history = StageHistory(stages=[STAGE, NEXT], tallies={}, commands=[command(Action.SET_RATE, 27.9)])
    steered, planned = cell_attempts(history).values()
    assert steered.key.load.label == "3 req/s · conc. 24 · batch 32 (rate 3 to 27.9 req/s)"
    assert planned.key.load.label == "3 req/s · conc. 24 · batch 32"
