"""Consistency of the counts of client and engine: requests in the system (Little's law) and generated tokens.

The same rules apply to a live window, a stage, a steady window and a run; only the source of the columns differs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineCounts:
    """The engine's counts at each scrape of a period, in order of time, as arrays of shape (scrapes,)."""

    starts: FloatArray
    ends: FloatArray
    requests: FloatArray
    """Running + waiting; NaN if not exported."""
    generated: FloatArray
    """Tokens generated since the previous scrape; NaN if not exported."""
    sums: Mapping[str, FloatArray] = field(default_factory=dict)
    """Increases since the previous scrape of the engine's sums and counts of latencies; NaN if not exported."""

    @property
    def times(self) -> FloatArray:
        """The middle of each scrape."""
        return (self.starts + self.ends) / 2

    @property
    def are_short(self) -> BoolArray:
        """Whether each scrape took so little time that its gauges and counters describe one."""
        return np.asarray(self.ends - self.starts <= MAX_SCRAPE_SECONDS)

    def part(self, selected: BoolArray) -> EngineCounts:
        """Return the counts of the selected scrapes."""
        columns = (self.starts, self.ends, self.requests, self.generated)
        starts, ends, requests, generated = (each[selected] for each in columns)
        sums = {name: values[selected] for name, values in self.sums.items()}
        return EngineCounts(starts=starts, ends=ends, requests=requests, generated=generated, sums=sums)


MIN_TOKENS = 500
"""Minimum tokens of a period; with fewer, tokens in transit look like a disagreement."""
MAX_SCRAPE_SECONDS = 1.0
"""Longer scrapes are ignored, because it is unclear which time their gauges describe."""
_MAX_STEP_SECONDS = 1.0
"""Maximum time that one scrape represents, so that gaps without scrapes are not overweighted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientTokens:
    """The tokens that the client counted in each tick, as arrays of shape (ticks,)."""

    tick_ends: FloatArray
    received: FloatArray
    """Tokens that arrived in the tick."""
    finished: FloatArray
    """Output tokens of the requests that succeeded in the tick: some engines count a request when it ends."""


@dataclass(frozen=True, slots=True)
class LittlesLaw:
    """The engine's requests relative to the client's; NaN if they cannot be compared."""

    error: float = math.nan
    """Engine / client - 1."""
    in_flight: float = math.nan
    """Mean requests in flight at the client."""
    foreign: float = math.nan
    """Mean requests that the engine held while the client had none in flight; NaN if no scrape shows it."""


def littles_law(engine: EngineCounts, in_flight: FloatArray) -> LittlesLaw:
    """Compare the means over the scrapes, weighted by the time that each represents.

    `in_flight` is the client's count at `engine.times`. Scrapes longer than MAX_SCRAPE_SECONDS are ignored, and for the
    comparison those without requests in flight at the client.
    """
    known = engine.are_short & ~np.isnan(engine.requests)
    both, alone = known & (in_flight > 0), known & (in_flight == 0)
    foreign = float(engine.requests[alone].mean()) if alone.any() else math.nan
    if not both.any():
        return LittlesLaw(foreign=foreign)
    weights = _time_shares(engine.times[both])
    client = float(np.average(in_flight[both], weights=weights))
    return LittlesLaw(float(np.average(engine.requests[both], weights=weights)) / client - 1, client, foreign)


def token_error(engine: EngineCounts, client: ClientTokens, *, least_span: float = 0.0) -> float:
    """Return generated tokens / the client's tokens - 1, between the first and the last scrape; NaN below MIN_TOKENS.

    NaN also if these scrapes are less than `least_span` seconds apart; none of them lasts beyond MAX_SCRAPE_SECONDS.
    Tokens of the ticks of these two scrapes may have arrived before or after them, and an engine may count tokens as
    `received` or as `finished`: the assumptions that agree best are used.
    """
    (usable,) = np.nonzero(~np.isnan(engine.generated) & engine.are_short)
    if usable.size < 2 or not client.tick_ends.size:
        return math.nan
    ends = usable[[0, -1]]
    if float(np.ptp(engine.times[ends])) < least_span:
        return math.nan
    starts, stops = engine.starts[ends], engine.ends[ends]
    generated = float(np.nansum(engine.generated[ends[0] + 1 : ends[1] + 1]))
    counts = [
        _nearest_count(generated, tokens, client.tick_ends, starts=starts, ends=stops)
        for tokens in (client.received, client.finished)
    ]
    nearest = min(counts, key=lambda tokens: abs(generated - tokens))
    comparable = nearest > 0 and max(generated, nearest) >= MIN_TOKENS
    return generated / nearest - 1 if comparable else math.nan


def increase(totals: FloatArray) -> FloatArray:
    """Return the increase of a counter at each scrape since the last known one; a smaller value is a restart from 0."""
    known = ~np.isnan(totals)
    values = totals[known]
    steps = np.diff(values, prepend=values[:1])
    result = np.full(totals.shape, math.nan)
    result[known] = np.where(steps < 0, values, steps)
    return result


def _nearest_count(
    generated: float, tokens: FloatArray, tick_ends: FloatArray, *, starts: FloatArray, ends: FloatArray
) -> float:
    """Return the client's count between two scrapes, as close to the engine's as the ticks of these scrapes allow."""
    totals = np.concatenate([[0.0], np.cumsum(tokens)])
    low = totals[np.searchsorted(tick_ends, starts, side="right")]
    high = totals[np.minimum(np.searchsorted(tick_ends, ends) + 1, tick_ends.size)]
    return float(np.clip(generated, max(low[1] - high[0], 0.0), high[1] - low[0]))


def _time_shares(times: FloatArray) -> FloatArray:
    """Return half of the time to the previous and to the next scrape; equal weights if all are at the same time."""
    if times.size < 2 or times[0] == times[-1]:
        return np.ones(times.shape)
    steps = np.minimum(np.diff(times), _MAX_STEP_SECONDS)
    return np.asarray(np.concatenate([[0.0], steps]) + np.concatenate([steps, [0.0]])) / 2
