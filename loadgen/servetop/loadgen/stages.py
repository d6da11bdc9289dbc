"""Stage lists as people write them."""

from __future__ import annotations

import math

from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.core.units import parse_rate, parse_seconds

_FORM = "write RATE:DURATION or RATE@BATCH:DURATION, as in 8:30s,16:30s,8@64:1m"


def parse_ramp(text: str, *, max_concurrency: int | None = None) -> tuple[StageConfig, ...]:
    """Stages from `8:30s,16:30s,8@64:30s`: requests/s, optionally @ the engine's batch size, for a duration.

    The rate may be `inf` when `max_concurrency`, which goes for every stage, is given. UsageError names the part
    that is wrong.
    """
    parts = [part.strip() for part in text.split(",")]
    if not text.strip():
        raise UsageError(f"the ramp is empty: {_FORM}")
    return tuple(_stage(part, max_concurrency) for part in parts)


def _stage(part: str, max_concurrency: int | None) -> StageConfig:
    load, colon, duration = part.partition(":")
    rate, at, batch = load.partition("@")
    if not colon:
        raise UsageError(f"ramp: {part!r} has no duration: {_FORM}")
    try:
        request_rate, seconds = parse_rate(rate.strip()), parse_seconds(duration)
    except UsageError as wrong:
        raise UsageError(f"ramp: in {part!r}: {wrong}") from None
    if at and not (batch.strip().isdecimal() and int(batch) > 0):
        raise UsageError(f"ramp: in {part!r}: {batch!r} is no batch size: give a whole number above 0")
    if math.isinf(request_rate) and max_concurrency is None:
        raise UsageError(f"ramp: {part!r} never stops sending: give --max-concurrency with an infinite rate")
    return StageConfig(
        request_rate=request_rate,
        max_concurrency=max_concurrency,
        max_num_seqs=int(batch) if at else None,
        duration=seconds,
    )


def default_ramp() -> tuple[StageConfig, ...]:
    """From a light load to more than a small engine takes, and back, in two minutes."""
    return tuple(StageConfig(request_rate=rate, duration=24.0) for rate in (4.0, 8.0, 16.0, 32.0, 8.0))
