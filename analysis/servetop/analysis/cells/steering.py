"""How the load of a stage was changed by commands while it ran, so that it is not taken for the planned one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from servetop.core.events import Action, Command, StageChange
from servetop.core.units import MAX_REQUEST_RATE

SAME_SHARE = 0.05
"""A rate is the same if it differs by no more than this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    rate: float
    limit: float
    """inf without a concurrency limit."""
    batch: float
    """NaN if unknown."""


def steering(stage: StageChange, commands: Sequence[Command], *, until: float) -> str:
    """Return how commands changed the load of a stage that ended at `until`, in a few words; empty if none did."""
    load = first = _Load(
        rate=math.inf if stage.request_rate is None else stage.request_rate,
        limit=math.inf if stage.max_concurrency is None else stage.max_concurrency,
        batch=math.nan if stage.max_num_seqs is None else stage.max_num_seqs,
    )
    loads, others = [first], dict[str, None]()
    for command in _within(commands, stage.at, until):
        load = _changed(load, command)
        loads.append(load)
        if command.action is Action.PAUSE_LOAD:
            others["paused"] = None
        elif command.action is Action.BURST and (command.value or 0) >= 1:
            others["burst"] = None
    return ", ".join([*_differences(loads, ramped=stage.ramp_from is not None), *others])


def _within(commands: Sequence[Command], start: float, until: float) -> list[Command]:
    applied = [(each.applied_at, each) for each in commands if each.applied_at is not None]
    return [each for at, each in sorted(applied, key=lambda pair: pair[0]) if start < at < until]


def _changed(load: _Load, command: Command) -> _Load:
    """Return the load after a command; the same one if the command was refused."""
    value = math.nan if command.value is None else command.value
    is_rate = 0 < value <= MAX_REQUEST_RATE
    match command.action:
        case Action.SET_RATE if is_rate or (value == math.inf and math.isfinite(load.limit)):
            return replace(load, rate=value)
        case Action.OPEN_LOOP if is_rate:
            return replace(load, rate=value, limit=math.inf)
        case Action.CLOSE_LOOP if 1 <= value < math.inf:
            return replace(load, rate=math.inf, limit=math.floor(value))
        case Action.SET_CONCURRENCY if 1 <= value < math.inf:
            return replace(load, limit=math.floor(value))
        case Action.SET_CONCURRENCY if not (0 < value < 1 or value < 0 or math.isinf(load.rate)):
            return replace(load, limit=math.inf)
        case Action.SET_MAX_NUM_SEQS if command.reply == f"batch size {value:g}":
            return replace(load, batch=value)
    return load


def _differences(loads: Sequence[_Load], *, ramped: bool) -> Iterator[str]:
    first, last = loads[0], loads[-1]
    rates = [load.rate for load in loads[1:]]
    if any(_differs(rate, first.rate) for rate in rates):
        yield "ramp changed" if ramped else f"rate {_farthest([load.rate for load in loads])} req/s"
    if any(load.limit != first.limit for load in loads):
        yield f"concurrency limit {_farthest([load.limit for load in loads])}"
    if last.batch != first.batch and not math.isnan(last.batch):
        yield f"batch size {_farthest([load.batch for load in loads])}"


def _differs(rate: float, planned: float) -> bool:
    return rate != planned and not abs(rate - planned) <= SAME_SHARE * planned


def _farthest(values: Sequence[float]) -> str:
    """Return the planned value and the one that differs most from it: `3 to 27.9`."""
    first = values[0]
    most = max(values, key=lambda value: math.inf if math.isnan(first) else abs(value - first))
    return f"{_text(first)} to {_text(most)}"


def _text(value: float) -> str:
    return "unlimited" if math.isinf(value) else "unknown" if math.isnan(value) else f"{round(value, 3):g}"
