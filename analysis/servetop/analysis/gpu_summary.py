"""The newest GPU samples and the energy per token, from the ticks up to a time."""

from __future__ import annotations

import math

from servetop.analysis.energy import energy_between, energy_meters
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import GpuSample
from servetop.core.tick import TICK_SECONDS

_MAX_AGE_TICKS = 8
"""Two seconds: with a slow driver, some ticks have no GPU samples."""


def newest_gpus(history: TickHistory, stop: int) -> tuple[GpuSample, ...]:
    """Return the newest sample of each device before tick `stop`; empty if older than two seconds."""
    recent = history.ticks[max(0, stop - _MAX_AGE_TICKS) : stop]
    return next((tick.gpus for tick in reversed(recent) if tick.gpus), ())


def joules_per_token(history: TickHistory, start: int, stop: int) -> float:
    """Return mean power / output tokens per second over ticks `start` to `stop`; NaN if unknown."""
    samples = [sample for tick in history.ticks[start:stop] for sample in tick.gpus]
    if not samples:
        return math.nan
    energy = energy_between(energy_meters(samples), samples[0].at, samples[-1].at)
    tokens = float(history.column("output_tokens", start=start, stop=stop).sum())
    if energy is None or not tokens:
        return math.nan
    return energy.joules / energy.known / energy.seconds * (stop - start) * TICK_SECONDS / tokens
