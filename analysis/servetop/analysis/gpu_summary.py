"""The GPUs' newest reading and the energy per token, from the ticks up to an instant."""

from __future__ import annotations

import math

from servetop.analysis.energy import energy_between, energy_meters
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import GpuSample
from servetop.core.tick import TICK_SECONDS

_PATIENCE = 8
"""Ticks (two seconds); a slow driver leaves some ticks without a reading."""


def newest_gpus(history: TickHistory, stop: int) -> tuple[GpuSample, ...]:
    """The newest reading before tick `stop`, one sample for each device; empty if it is more than two seconds old."""
    recent = history.ticks[max(0, stop - _PATIENCE) : stop]
    return next((tick.gpus for tick in reversed(recent) if tick.gpus), ())


def joules_per_token(history: TickHistory, start: int, stop: int) -> float:
    """Mean power over ticks `start` to `stop` / output tokens received per second; NaN if unknown."""
    samples = [sample for tick in history.ticks[start:stop] for sample in tick.gpus]
    if not samples:
        return math.nan
    energy = energy_between(energy_meters(samples), samples[0].at, samples[-1].at)
    tokens = float(history.column("output_tokens", start=start, stop=stop).sum())
    if energy is None or not tokens:
        return math.nan
    return energy.joules / energy.known / energy.seconds * (stop - start) * TICK_SECONDS / tokens
