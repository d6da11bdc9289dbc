"""Electrical energy of GPUs, from each device's energy counter if it has one, else from its power over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.events import GpuSample


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnergyMeter:
    """The cumulative energy of one device at each reading, interpolated linearly between readings."""

    at: FloatArray
    """Times of the readings, ascending; shape (readings,)."""
    joules: FloatArray
    """Joules since the first reading."""
    known: FloatArray
    """Seconds since the first reading for which the energy is known, excluding gaps."""
    counted: bool
    """Whether the device's energy counter was read; otherwise its power was integrated."""
    index: int
    """Index of the device."""

    def between(self, start: float, until: float) -> tuple[float, float]:
        """Return the joules from `start` to `until`, and the seconds for which they are known."""
        ends = np.array([start, until])
        joules, known = (np.interp(ends, self.at, each) for each in (self.joules, self.known))
        return float(joules[1] - joules[0]), float(known[1] - known[0])


MAX_GAP_SECONDS = 2.0
"""Across a longer gap between two power readings, the energy is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """The energy of several devices over a period."""

    joules: float
    devices: int
    source: str
    """`counter`, `power`, or `counter and power` if devices differ."""
    known: float
    """Fraction of the device time for which the energy is known; the rest is not in `joules`."""
    seconds: float


def energy_meters(samples: Iterable[GpuSample]) -> list[EnergyMeter]:
    """Return one meter per device that the engine uses and that reported its energy or power at least twice.

    The engine uses the devices on which its processes have memory. If its processes are unknown (attached, in a
    container), all devices are included.
    """
    by_device: dict[int, list[GpuSample]] = {}
    for sample in samples:
        by_device.setdefault(sample.index, []).append(sample)
    used = {index for index, rows in by_device.items() if any(row.engine_memory for row in rows)}
    meters = (_meter(index, rows) for index, rows in sorted(by_device.items()) if not used or index in used)
    return [meter for meter in meters if meter is not None]


def energy_between(meters: Sequence[EnergyMeter], start: float, until: float) -> Energy | None:
    """Return the energy of all devices over a period; None if it is entirely unknown."""
    seconds = until - start
    parts = [meter.between(start, until) for meter in meters] if math.isfinite(seconds) and seconds > 0 else []
    known = sum(seconds_known for _, seconds_known in parts)
    if known <= 0:
        return None
    kinds = {meter.counted for meter, (_, seconds_known) in zip(meters, parts, strict=True) if seconds_known > 0}
    names = [name for counted, name in ((True, "counter"), (False, "power")) if counted in kinds]
    return Energy(
        joules=sum(joules for joules, _ in parts),
        devices=len(parts),
        source=" and ".join(names),
        known=min(known / (seconds * len(parts)), 1.0),
        seconds=seconds,
    )


def _meter(index: int, samples: Sequence[GpuSample]) -> EnergyMeter | None:
    ordered = sorted(samples, key=lambda sample: sample.at)
    counter, power = ([_value(getattr(each, name)) for each in ordered] for name in ("energy", "power"))
    counted = sum(not math.isnan(value) for value in counter) > 1
    values = np.array(counter if counted else power, dtype=np.float64)
    present = ~np.isnan(values)
    at, values = np.array([each.at for each in ordered], dtype=np.float64)[present], values[present]
    if at.size < 2:
        return None
    steps = np.diff(at)
    if counted:
        increases = np.diff(values)
        joules, known = np.where(increases < 0, values[1:], increases), steps  # a decrease: a restart from 0
    else:
        short = steps <= MAX_GAP_SECONDS
        joules, known = np.where(short, (values[1:] + values[:-1]) / 2 * steps, 0.0), np.where(short, steps, 0.0)
    return EnergyMeter(at=at, joules=_summed(joules), known=_summed(known), counted=counted, index=index)


def _summed(steps: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(steps)])


def _value(value: float | None) -> float:
    return math.nan if value is None else value
