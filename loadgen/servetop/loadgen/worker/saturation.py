"""Detects that the active senders are saturated, by the trust meter's limits for loop lag and slip."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.trust.trust import LOOP_LAG_LIMIT, SLIP_LIMIT
from servetop.core.tick import TICK_SECONDS, ClientTick
from servetop.core.units import MS_PER_S

SATURATED_TICKS = 3
"""Consecutive ticks beyond a limit before saturation is reported."""
_SETTLING_TICKS = 8
"""Ticks without another report, so that a countermeasure can take effect."""


class Saturation:
    """Judges the worst sender of each tick, because an average would hide one that is too busy."""

    def __init__(self) -> None:
        self._ticks = 0

    def update(self, ticks: Mapping[int, ClientTick]) -> str | None:
        """Take one tick of each active sender; return a description of the worst one if action is needed."""
        saturated = {worker: text for worker, tick in ticks.items() if (text := _excess(tick))}
        if saturated:
            self._ticks += 1
        elif all(tick.loop_lag.count for tick in ticks.values()):  # a tick without a heartbeat shows nothing
            self._ticks = min(0, self._ticks + 1)
        if self._ticks < SATURATED_TICKS:
            return None
        self._ticks = -_SETTLING_TICKS
        worst = max(saturated, key=lambda worker: ticks[worker].cpu_seconds)
        return f"sender {worst} {saturated[worst]}, using {ticks[worst].cpu_seconds / TICK_SECONDS:.0%} of a CPU"


def _excess(tick: ClientTick) -> str:
    lag, slip = tick.loop_lag.percentile(99), tick.slip.percentile(99)
    found = [
        (lag > LOOP_LAG_LIMIT, f"lags {lag * MS_PER_S:.0f} ms at p99"),
        (slip > SLIP_LIMIT, f"sends {slip * MS_PER_S:.0f} ms late at p99"),
    ]
    return " and ".join(text for exceeded, text in found if exceeded)
