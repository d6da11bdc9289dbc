"""Whether client and engine agree on what both count: requests in the system (Little's law) and generated tokens.

One rule for every scope: a live window, a stage, a steady window and a run differ only in where the columns come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray

MIN_TOKENS = 500
"""Tokens in a period; below it, a few in transit look like a disagreement."""
LONGEST_SCRAPE = 1.0
"""Seconds; after a longer scrape it is unclear which instant its gauges describe."""
_LONGEST_STEP = 1.0
"""Seconds one scrape may stand for: a gap without scrapes weighs no more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineCounts:
    """The engine's counts at each scrape of a period, in order of time; arrays of shape (scrapes,)."""

    starts: FloatArray
    ends: FloatArray
    requests: FloatArray
    """Running + waiting; NaN where not exported."""
    generated: FloatArray
    """Tokens generated since the previous scrape; NaN where not exported."""

    @property
    def instants(self) -> FloatArray:
        """Middle of each scrape."""
        return (self.starts + self.ends) / 2

    def part(self, chosen: BoolArray) -> EngineCounts:
        """The chosen scrapes only."""
        columns = (self.starts, self.ends, self.requests, self.generated)
        starts, ends, requests, generated = (each[chosen] for each in columns)
        return EngineCounts(starts=starts, ends=ends, requests=requests, generated=generated)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientTokens:
    """Tokens the client counted in each tick; arrays of shape (ticks,)."""

    tick_ends: FloatArray
    received: FloatArray
    """Tokens that arrived in the tick."""
    finished: FloatArray
    """Output tokens of the requests that ended well in the tick: some engines count a request when it ends."""


@dataclass(frozen=True, slots=True)
class LittlesLaw:
    """The engine's requests relative to the client's; NaN where they cannot be compared."""

    error: float = math.nan
    """Engine / client - 1."""
    in_flight: float = math.nan
    """Mean requests in flight at the client."""


def littles_law(engine: EngineCounts, in_flight: FloatArray) -> LittlesLaw:
    """Compare means over the scrapes, weighted by the time each stands for.

    `in_flight` is the client's count at `engine.instants`. Scrapes with nothing in flight at the client, and those
    longer than LONGEST_SCRAPE, are left out.
    """
    both = (engine.ends - engine.starts <= LONGEST_SCRAPE) & ~np.isnan(engine.requests) & (in_flight > 0)
    if not both.any():
        return LittlesLaw()
    weights = _time_shares(engine.instants[both])
    client = float(np.average(in_flight[both], weights=weights))
    return LittlesLaw(float(np.average(engine.requests[both], weights=weights)) / client - 1, client)


def token_error(engine: EngineCounts, client: ClientTokens) -> float:
    """Generated tokens / tokens the client counted - 1, between the first and the last scrape.

    Tokens of the ticks in which these two scrapes happened may have come before or after them: the split, and the way
    of counting (`received` or `finished`), that agree best are assumed. NaN below MIN_TOKENS.
    """
    known = ~np.isnan(engine.generated)
    if known.sum() < 2 or not client.tick_ends.size:
        return math.nan
    starts, ends = engine.starts[known][[0, -1]], engine.ends[known][[0, -1]]
    generated = float(engine.generated[known][1:].sum())
    counted = [
        _nearest_count(generated, tokens, client.tick_ends, starts=starts, ends=ends)
        for tokens in (client.received, client.finished)
    ]
    nearest = min(counted, key=lambda tokens: abs(generated - tokens))
    comparable = nearest > 0 and max(generated, nearest) >= MIN_TOKENS
    return generated / nearest - 1 if comparable else math.nan


def increase(totals: FloatArray) -> FloatArray:
    """How much a counter grew at each scrape since the last known one; a smaller value is a restart from 0."""
    known = ~np.isnan(totals)
    values = totals[known]
    steps = np.diff(values, prepend=values[:1])
    result = np.full(totals.shape, math.nan)
    result[known] = np.where(steps < 0, values, steps)
    return result


def _nearest_count(
    generated: float, tokens: FloatArray, tick_ends: FloatArray, *, starts: FloatArray, ends: FloatArray
) -> float:
    """The client's count between two scrapes, as near to the engine's as the ticks of these scrapes allow."""
    totals = np.concatenate([[0.0], np.cumsum(tokens)])
    least = totals[np.searchsorted(tick_ends, starts, side="right")]
    most = totals[np.minimum(np.searchsorted(tick_ends, ends) + 1, tick_ends.size)]
    return float(np.clip(generated, max(least[1] - most[0], 0.0), most[1] - least[0]))


def _time_shares(instants: FloatArray) -> FloatArray:
    """Half of the time to the scrape before and to the one after; equal shares when they are all at one instant."""
    if instants.size < 2 or instants[0] == instants[-1]:
        return np.ones(instants.shape)
    steps = np.minimum(np.diff(instants), _LONGEST_STEP)
    return np.asarray(np.concatenate([[0.0], steps]) + np.concatenate([steps, [0.0]])) / 2
