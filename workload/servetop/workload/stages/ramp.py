"""Parses the stages of `--ramp`."""

from __future__ import annotations

import math

from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.core.units import parse_rate, parse_seconds

_SYNTAX = "write RATE:DURATION, FROM-TO:DURATION or RATE@BATCH:DURATION, as in 8:30s,8-32:1m,8@64:1m"


def parse_ramp(
    text: str, *, max_concurrency: int | None = None, strategy: str | None = None
) -> tuple[StageConfig, ...]:
    """Stages from `8:30s,8-32:1m,8@64:30s`: requests/s, optionally @ the engine's batch size, for a duration.

    Two rates are a ramp from one to the other, by `strategy` (linear or exponential in time).

    The rate may be `inf` when `max_concurrency`, which applies to every stage, is given. UsageError names the wrong
    part.
    """
    parts = [part.strip() for part in text.split(",")]
    if not text.strip():
        raise UsageError(f"the ramp is empty: {_SYNTAX}")
    return tuple(_stage(part, max_concurrency, strategy or "linear") for part in parts)


def _stage(part: str, max_concurrency: int | None, strategy: str) -> StageConfig:
    load, colon, duration = part.partition(":")
    rates, at, batch = load.partition("@")
    start, dash, rate = rates.strip().rpartition("-") if rates.strip()[:1].isdigit() else ("", "", rates)
    if not colon:
        raise UsageError(f"ramp: {part!r} has no duration: {_SYNTAX}")
    try:
        request_rate, seconds = parse_rate(rate.strip()), parse_seconds(duration)
        ramp_from = parse_rate(start) if dash else None
    except UsageError as wrong:
        raise UsageError(f"ramp: in {part!r}: {wrong}") from None
    if at and not (batch.strip().isdecimal() and int(batch) > 0):
        raise UsageError(f"ramp: in {part!r}: invalid batch size {batch!r}: give an integer above 0")
    if math.isinf(request_rate) and max_concurrency is None:
        raise UsageError(f"ramp: {part!r} never stops sending: give --max-concurrency with an infinite rate")
    return StageConfig(
        request_rate=request_rate,
        ramp_from=ramp_from,
        ramp_strategy=strategy,
        max_concurrency=max_concurrency,
        max_num_seqs=int(batch) if at else None,
        duration=seconds,
    )


def default_ramp() -> tuple[StageConfig, ...]:
    """Five stages of 24 s: from a light load to more than a small engine can serve, and back."""
    return tuple(StageConfig(request_rate=rate, duration=24.0) for rate in (4.0, 8.0, 16.0, 32.0, 8.0))
