"""The GPU of a virtual run: utilisation from the time in which its engine computed, clocks, power, and a throttle."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from servetop.core.events import GpuSample


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTelemetry:
    """What the GPUs of a virtual run report, one for each replica; by default as an A100 (SXM) does."""

    sm_clock: float = 1.41e9
    """Hz under load."""
    clock_step: float = 15e6
    """Hz between two clocks that the device can run at; readings vary by one step."""
    droop: float = 0.0
    """Fraction by which the clock is lower at full utilisation, because the power is limited."""
    idle_clock: float = 0.21e9
    idle_power: float = 60.0
    """Watts."""
    full_power: float = 330.0
    """Watts at full utilisation and `sm_clock`."""
    throttle_from: float = math.inf
    """Run time from which the clock under load is `throttled_to` of `sm_clock`."""
    throttled_to: float = 1.0
    reason: str = "power cap"

    def clock_share(self, at: float) -> float:
        """Clock under load at a time, as a fraction of `sm_clock`."""
        return self.throttled_to if at >= self.throttle_from else 1.0


class VirtualGpu:
    """One device, read at ascending times."""

    def __init__(self, telemetry: GpuTelemetry, *, name: str, index: int, seed: int) -> None:
        self._telemetry = telemetry
        self._name = name
        self._index = index
        self._random = random.Random(f"{seed}/{index}")
        self._read_at = 0.0
        self._busy_seconds = 0.0

    def sample(self, at: float, *, busy_seconds: float) -> GpuSample:
        """Return a reading; `busy_seconds` is the time in which the engine computed, since the run's origin."""
        telemetry, share = self._telemetry, self._telemetry.clock_share(at)
        seconds = at - self._read_at
        use = min((busy_seconds - self._busy_seconds) / seconds, 1.0) if seconds > 0 else 0.0
        self._read_at, self._busy_seconds = at, busy_seconds
        clock = telemetry.sm_clock * share * (1 - telemetry.droop * use) + telemetry.clock_step * self._random.choice(
            (-1, 0, 0, 0, 1)
        )
        return GpuSample(
            at=at,
            index=self._index,
            name=self._name,
            utilisation=use,
            power=telemetry.idle_power + use * (telemetry.full_power - telemetry.idle_power) * share**2,
            sm_clock=clock if use > 0 else telemetry.idle_clock,
            throttled=telemetry.reason if share < 1 and use > 0 else "",
        )
