"""Commands that change a schedule while it plays; each is answered in words for a person."""

from __future__ import annotations

import math

from servetop.core.events import Action, Command
from servetop.core.units import MAX_REQUEST_RATE
from servetop.workload.schedule import Schedule
from servetop.workload.stage_run import Due, StageRun

_NO_STAGE = "no stage is being played"
_MAX_BURST = 10_000

_STEERED = frozenset(
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


def steer(schedule: Schedule, command: Command, at: float) -> str | None:
    """Obey at run time `at` and say what became of it; None for an action that is not the schedule's."""
    if command.action is Action.NEXT_STAGE:
        return _next_stage(schedule, at)
    if command.action not in _STEERED:
        return None
    play = schedule.play
    if play is None:
        return _NO_STAGE
    match command.action:
        case Action.SET_RATE:
            return _set_rate(play, command.value, at)
        case Action.SET_CONCURRENCY:
            return _set_concurrency(play, command.value)
        case Action.OPEN_LOOP:
            return _open_loop(play, command.value, at)
        case Action.CLOSE_LOOP:
            return _close_loop(play, command.value, at)
        case Action.HOLD_STAGE | Action.CONTINUE_STAGES:
            return _hold(play, at, hold=command.action is Action.HOLD_STAGE)
        case _:
            return _pause(play, at, pause=command.action is Action.PAUSE_LOAD)


def burst(play: StageRun | None, count: float | None, at: float) -> tuple[list[Due], str]:
    """So many requests that are all due at `at`, or none, and what to say of it."""
    if play is None:
        return [], _NO_STAGE
    if count is None or not 1 <= count <= _MAX_BURST:
        return [], f"a burst is 1 to {_MAX_BURST:,} requests"
    return [Due(play.index, at)] * int(count), f"{int(count)} requests now"


def _next_stage(schedule: Schedule, at: float) -> str:
    if schedule.next_stage(at):
        return f"stage ended, {schedule.following} to come"
    return _NO_STAGE if schedule.play is None else "this is the last stage"


def _set_rate(play: StageRun, value: float | None, at: float) -> str:
    if value is None or not value > 0:
        return "the rate must be above 0: pause the load to send nothing"
    if math.isinf(value) and play.limit is None:
        return "an infinite rate needs a concurrency limit: set one first"
    if value > MAX_REQUEST_RATE and not math.isinf(value):
        return f"the rate must be at or below {MAX_REQUEST_RATE:,.0f} requests/s"
    play.set_rate(value, at)
    return "sending whenever the concurrency allows" if play.closed else f"sending {value:g} requests/s"


def _set_concurrency(play: StageRun, value: float | None) -> str:
    if value is None or math.isinf(value) or value == 0:
        if math.isinf(play.rate):
            return "an infinite rate needs a concurrency limit: set a rate first"
        play.limit = None
        return "no concurrency limit"
    if not value >= 1:
        return "the concurrency must be 1 or more, or 0 for no limit"
    play.limit = int(value)
    return f"at most {play.limit} requests at once"


def _open_loop(play: StageRun, value: float | None, at: float) -> str:
    """The limit goes with the closed loop: under one, an open loop would soon be closed again."""
    if value is None or not 0 < value <= MAX_REQUEST_RATE:
        return f"an open loop needs a rate above 0 and at or below {MAX_REQUEST_RATE:,.0f} requests/s"
    play.limit = None
    play.set_rate(value, at)
    return f"open loop: sending {value:g} requests/s, whatever is in flight"


def _close_loop(play: StageRun, value: float | None, at: float) -> str:
    if value is None or math.isinf(value) or not value >= 1:
        return "a closed loop needs a concurrency of 1 or more"
    play.limit = int(value)
    play.set_rate(math.inf, at)
    return f"closed loop: {play.limit} requests at once, each sent when another ends"


def _hold(play: StageRun, at: float, *, hold: bool) -> str:
    if play.held == hold:
        return "the stage is held already" if hold else "the stages go on already"
    if hold:
        play.hold(at)
        return f"holding at {play.config.label}"
    play.go_on(at)
    return "the stages go on"


def _pause(play: StageRun, at: float, *, pause: bool) -> str:
    if play.paused == pause:
        return "the load is paused already" if pause else "the load is not paused"
    if pause:
        play.pause(at)
        return "paused: nothing is sent until the load is resumed"
    play.resume(at)
    return "the load goes on"
