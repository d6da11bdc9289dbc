"""Ticks of a watched server whose metrics pages are as old as a test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servetop.core.events import EngineSample
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick

TOKENS = 520.0
"""Output tokens/s of the server."""
Gauges = Callable[[float], dict[str, float]]
"""The gauges at a time."""


def serving(at: float) -> dict[str, float]:
    """Some requests run, and none waits."""
    del at
    return {"running": 5.0, "waiting": 0.0, "kv_usage": 0.2}


def page(at: float, gauges: Gauges = serving) -> EngineSample:
    """Return the metrics page of a time."""
    return EngineSample(
        scrape_start=at - 0.01, scrape_end=at, generation_tokens_total=1000.0 + TOKENS * at,
        prompt_tokens_total=100.0 + 10 * at, first_tokens_total=2 * at, preemptions_total=0.0, **gauges(at),
    )  # fmt: skip


def paged_ticks(
    *, every: float, seconds: float, first: float = 1.0, until: float | None = None, gauges: Gauges = serving
) -> Sequence[Tick]:
    """Return ticks with a page of each `every` seconds from `first` on, as a source repeats it until the next.

    From `until` on the source does not respond.
    """
    found = []
    for index in range(round(seconds / TICK_SECONDS)):
        end = (index + 1) * TICK_SECONDS
        known = end >= first and (until is None or end < until)
        at = first + (end - first) // every * every
        found.append(Tick(client=ClientTick(index=index), engine=page(at, gauges) if known else None))
    return found
