"""The client's mean TTFT, TPOT and E2EL beside those that the engine measured of the same requests.

Only sums and counts of the engine's histograms are used, never their buckets. The difference is the network, the
server's HTTP server and tokenizer, and the time in which an event waited for the client.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.trust.consistency import EngineCounts
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.tick import TICK_SECONDS, Tick

TOTALS = {
    "ttft": ("first_token_seconds_total", "first_tokens_total"),
    "tpot": ("tpot_seconds_total", "tpot_requests_total"),
    "e2el": ("e2el_seconds_total", "e2el_requests_total"),
}
"""Fields of EngineSample with the engine's sum of a latency, and with the number of its requests."""
MIN_REQUESTS = 10
"""Minimum requests of a period; with fewer, a request that only one side counted changes the mean."""
COUNT_DIFFERENCE, REQUESTS_AT_EDGES = 0.05, 2.0
"""Largest difference of the counts: a fraction of them, or requests that a first or last scrape divided otherwise."""


@dataclass(frozen=True, slots=True)
class MeanTimes:
    """Two means of one latency over the same requests, in seconds; NaN if they cannot be compared."""

    client: float = math.nan
    engine: float = math.nan

    @property
    def excess(self) -> float:
        """Client - engine, in seconds."""
        return self.client - self.engine


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTimes:
    """The latencies that both sides measured over a period."""

    ttft: MeanTimes = MeanTimes()
    tpot: MeanTimes = MeanTimes()
    e2el: MeanTimes = MeanTimes()
    round_trip: float = math.nan
    """Seconds of the fastest scrape: a round trip and a response of the same server, at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientTimes:
    """Sums and counts of the client's latencies in each tick, by their names in TOTALS; arrays of shape (ticks,)."""

    tick_ends: FloatArray
    seconds: Mapping[str, FloatArray]
    counts: Mapping[str, FloatArray]

    @classmethod
    def of(cls, ticks: Sequence[Tick]) -> ClientTimes:
        """Return those of some ticks."""
        histograms = {name: [getattr(tick.client, name) for tick in ticks] for name in TOTALS}
        return cls(
            tick_ends=np.array([tick.end for tick in ticks], dtype=np.float64),
            seconds={name: np.array([each.total for each in found]) for name, found in histograms.items()},
            counts={name: np.array([float(each.count) for each in found]) for name, found in histograms.items()},
        )

    def where(self, selected: BoolArray) -> ClientTimes:
        """Return those of the selected ticks; the others count nothing."""
        seconds, counts = (
            {name: np.where(selected, each, 0.0) for name, each in values.items()}
            for values in (self.seconds, self.counts)
        )
        return ClientTimes(tick_ends=self.tick_ends, seconds=seconds, counts=counts)

    def between(self, name: str, times: FloatArray) -> tuple[float, float]:
        """Return the sum and the count between two times, which may lie within ticks."""
        edges = np.concatenate([self.tick_ends[:1] - TICK_SECONDS, self.tick_ends])
        sums = (np.concatenate([[0.0], np.cumsum(each[name])]) for each in (self.seconds, self.counts))
        first, last = (float(np.diff(np.interp(times, edges, each))[0]) for each in sums)
        return first, last


def engine_times(engine: EngineCounts, client: ClientTimes) -> EngineTimes:
    """Compare the means between the first and the last scrape, where both sides counted the same requests."""
    if not engine.times.size or not client.tick_ends.size:
        return EngineTimes()
    means = {name: _means(engine, client, name) for name in TOTALS}
    return EngineTimes(**means, round_trip=float((engine.ends - engine.starts).min()))


def _means(engine: EngineCounts, client: ClientTimes, name: str) -> MeanTimes:
    seconds, counts = (engine.sums[field] for field in TOTALS[name])
    known = ~np.isnan(seconds) & ~np.isnan(counts)
    if known.sum() < 2:
        return MeanTimes()
    total, requests = float(seconds[known][1:].sum()), float(counts[known][1:].sum())
    own_total, own_requests = client.between(name, engine.times[known][[0, -1]])
    allowed = max(REQUESTS_AT_EDGES, COUNT_DIFFERENCE * requests)
    if min(requests, own_requests) < MIN_REQUESTS or abs(requests - own_requests) > allowed:
        return MeanTimes()
    return MeanTimes(own_total / own_requests, total / requests)
