"""What the ticks up to an instant say of the GPUs: their newest reading, and the energy that a token takes."""

from __future__ import annotations

import math

from servetop.analysis.energy import energy_between, energy_meters
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import GpuSample
from servetop.core.tick import TICK_SECONDS

_PATIENCE = 8
"""Ticks (two seconds): a driver that answers late leaves some without a reading."""


def newest_gpus(history: TickHistory, stop: int) -> tuple[GpuSample, ...]:
    """The newest reading before tick `stop`, one sample a device; empty when it is more than two seconds old."""
    recent = history.ticks[max(0, stop - _PATIENCE) : stop]
    return next((tick.gpus for tick in reversed(recent) if tick.gpus), ())


def joules_per_token(history: TickHistory, start: int, stop: int) -> float:
    """Mean power over ticks `start` to `stop`, divided by the output tokens that arrived a second; NaN if not known."""
    samples = [sample for tick in history.ticks[start:stop] for sample in tick.gpus]
    if not samples:
        return math.nan
    energy = energy_between(energy_meters(samples), samples[0].at, samples[-1].at)
    tokens = float(history.column("output_tokens", start=start, stop=stop).sum())
    if energy is None or not tokens:
        return math.nan
    return energy.joules / energy.known / energy.seconds * (stop - start) * TICK_SECONDS / tokens
