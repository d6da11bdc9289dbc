"""Commands that change a running schedule; each returns a one-line reply for the user."""

from __future__ import annotations

import math

from servetop.core.events import Action, Command
from servetop.core.text.counted import counted
from servetop.core.units import MAX_REQUEST_RATE
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_run import Due, StageRun

_NO_STAGE = "no stage is running"
_MAX_BURST = 10_000

_STAGE_COMMANDS = frozenset(
    {
        Action.SET_RATE,
        Action.SET_CONCURRENCY,
        Action.HOLD_STAGE,
        Action.CONTINUE_STAGES,
        Action.PAUSE_LOAD,
        Action.RESUME_LOAD,
        Action.OPEN_LOOP,
        Action.CLOSE_LOOP,
    }
)


def apply_command(schedule: Schedule, command: Command, at: float) -> str | None:
    """Apply a command as of run time `at` and return the reply; None if the action does not concern the schedule."""
    if command.action is Action.NEXT_STAGE:
        return _next_stage(schedule, at)
    if command.action not in _STAGE_COMMANDS:
        return None
    stage = schedule.stage
    if stage is None:
        return _NO_STAGE
    match command.action:
        case Action.SET_RATE:
            return _set_rate(stage, command.value, at)
        case Action.SET_CONCURRENCY:
            return _set_concurrency(stage, command.value)
        case Action.OPEN_LOOP:
            return _open_loop(stage, command.value, at)
        case Action.CLOSE_LOOP:
            return _close_loop(stage, command.value, at)
        case Action.HOLD_STAGE | Action.CONTINUE_STAGES:
            return _hold(stage, at, hold=command.action is Action.HOLD_STAGE)
        case _:
            return _pause(stage, at, pause=command.action is Action.PAUSE_LOAD)


def burst(stage: StageRun | None, count: float | None, at: float) -> tuple[list[Due], str]:
    """Return `count` requests that are all due at `at`, or none if the command is invalid, and the reply."""
    if stage is None:
        return [], _NO_STAGE
    if count is None or not 1 <= count <= _MAX_BURST:
        return [], f"invalid burst: use 1 to {_MAX_BURST:,} requests"
    return [Due(stage.index, at)] * int(count), f"sending {counted(int(count), 'request')} now"


def stop_reply(action: Action, count: int) -> str:
    """Return the reply to a cancellation of `count` requests, or to a stop that waits for those in flight."""
    if action is Action.CANCEL:
        return f"{counted(count, 'request')} cancelled"
    return f"no further requests are sent, waiting for {counted(count, 'request')} in flight"


def _next_stage(schedule: Schedule, at: float) -> str:
    if schedule.next_stage(at):
        return f"stage ended, {schedule.stages_left} remaining"
    return _NO_STAGE if schedule.stage is None else "this is the last stage"


def _set_rate(stage: StageRun, value: float | None, at: float) -> str:
    if value is None or not value > 0:
        return "the rate must be above 0: pause the load to stop sending"
    if math.isinf(value) and stage.limit is None:
        return "an infinite rate needs a concurrency limit: set one first"
    if value > MAX_REQUEST_RATE and not math.isinf(value):
        return f"the rate must be at or below {MAX_REQUEST_RATE:,.0f} requests/s"
    stage.set_rate(value, at)
    return "sending whenever the concurrency limit allows" if stage.closed else f"sending {value:g} requests/s"


def _set_concurrency(stage: StageRun, value: float | None) -> str:
    if value is None or math.isinf(value) or value == 0:
        if math.isinf(stage.rate):
            return "an infinite rate needs a concurrency limit: set a rate first"
        stage.limit = None
        return "no concurrency limit"
    if not value >= 1:
        return "the concurrency must be 1 or more, or 0 for no limit"
    stage.limit = int(value)
    return f"at most {counted(stage.limit, 'concurrent request')}"


def _open_loop(stage: StageRun, value: float | None, at: float) -> str:
    """Also remove the concurrency limit, which would soon make the open loop a closed one again."""
    if value is None or not 0 < value <= MAX_REQUEST_RATE:
        return f"an open loop needs a rate above 0 and at or below {MAX_REQUEST_RATE:,.0f} requests/s"
    stage.limit = None
    stage.set_rate(value, at)
    return f"open loop: sending {value:g} requests/s, regardless of requests in flight"


def _close_loop(stage: StageRun, value: float | None, at: float) -> str:
    if value is None or math.isinf(value) or not value >= 1:
        return "a closed loop needs a concurrency of 1 or more"
    stage.limit = int(value)
    stage.set_rate(math.inf, at)
    return f"closed loop: {counted(stage.limit, 'concurrent request')}, each sent when another ends"


def _hold(stage: StageRun, at: float, *, hold: bool) -> str:
    if stage.held == hold:
        return "the stage is already held" if hold else "the stage is not held"
    if hold:
        stage.hold(at)
        return f"holding at {_load_of(stage)}"
    stage.continue_(at)
    return "the stages continue"


def _load_of(stage: StageRun) -> str:
    """Return the load in force, which commands may have changed since the stage began."""
    if math.isinf(stage.rate) and stage.limit is not None:
        return counted(stage.limit, "concurrent request")
    return f"{stage.rate:.3g} req/s"


def _pause(stage: StageRun, at: float, *, pause: bool) -> str:
    if stage.paused == pause:
        return "the load is already paused" if pause else "the load is not paused"
    if pause:
        stage.pause(at)
        return "paused: nothing is sent until the load resumes"
    stage.resume(at)
    return "the load resumes"
