"""Whether the senders at work are at their limit: judged by the worst of them, by the limits of the trust meter."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.verdicts.trust import LOOP_LAG_LIMIT, SLIP_LIMIT
from servetop.core.tick import TICK_SECONDS, ClientTick
from servetop.core.units import MS_PER_S

PATIENCE_TICKS = 3
"""In a row beyond a limit, before it is said."""
_SETTLING_TICKS = 8
"""After that it is not said again for so long: what was done about it must show first."""


class Saturation:
    """Watches ticks; several senders are never averaged, as one that is too busy would hide among the others."""

    def __init__(self) -> None:
        self._ticks = 0

    def take(self, ticks: Mapping[int, ClientTick]) -> str | None:
        """One tick of each sender at work; the worst one's figures, in words, when something has to be done."""
        strained = {worker: words for worker, tick in ticks.items() if (words := _strained(tick))}
        if strained:
            self._ticks += 1
        elif all(
            tick.loop_lag.count for tick in ticks.values()
        ):  # a tick in which a sender's loop stood still says nothing
            self._ticks = min(0, self._ticks + 1)
        if self._ticks < PATIENCE_TICKS:
            return None
        self._ticks = -_SETTLING_TICKS
        worst = max(strained, key=lambda worker: ticks[worker].cpu_seconds)
        return f"sender {worst} {strained[worst]}, using {ticks[worst].cpu_seconds / TICK_SECONDS:.0%} of a processor"


def _strained(tick: ClientTick) -> str:
    lag, slip = tick.loop_lag.percentile(99), tick.slip.percentile(99)
    found = [
        (lag > LOOP_LAG_LIMIT, f"lags {lag * MS_PER_S:.0f} ms at p99"),
        (slip > SLIP_LIMIT, f"sends {slip * MS_PER_S:.0f} ms late at p99"),
    ]
    return " and ".join(words for beyond, words in found if beyond)
