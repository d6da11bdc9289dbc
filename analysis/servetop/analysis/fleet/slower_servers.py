"""Which of several servers is much slower than the others of the same model and version."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.fleet.token_times import TokenPace, TokenTimes
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray

SLOWER = Bottleneck.SLOWER.value
"""The state of such a server."""
FACTOR = 1.5
"""Times the others' time per output token from which a server is slower."""
LEAST_SERVERS = 3
"""Servers that can be compared: of two it is not known which one is as it should be."""
LEAST_TOKENS = 50
"""Output tokens of each server in the seconds that are compared."""
MORE_PROMPTS = 1.5
"""Prompt tokens relative to those of the others up to which prompts do not explain a longer time per token."""
MORE_PREFILLING = 0.5
"""Requests in prefill, beyond MORE_PROMPTS times those of the others, from which a prompt explains it."""
STEP = 1.0
"""Seconds between the two readings on which a server has to be slower."""
KEPT = 3
"""Readings for which it still counts as slower afterwards, so that the state does not flicker."""
LOOKBACK = 600.0
"""Seconds in which the begin is searched."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PacedServer:
    """One server, and what has to be the same for two to be compared: engine, version and model."""

    number: int
    group: Hashable
    times: TokenTimes
    history: TickHistory

    def pace(self, grid: FloatArray) -> TokenPace:
        """Return what it did up to each time."""
        return self.times.pace(grid, self.history)


def slower_now(servers: Sequence[PacedServer], at: float) -> dict[int, tuple[float, float]]:
    """Return the servers that are slower at a time, each with the factor, and since when: NaN if that is long ago."""
    few = slower_factors(servers, at - np.arange(KEPT + 1, -0.5, -1.0) * STEP)
    if not few.size or not (few[:, -1] > 0).any():
        return {}
    grid = at - np.arange(min(LOOKBACK, max(at, STEP)) // STEP, -0.5, -1.0) * STEP
    factors = slower_factors(servers, grid)
    return {
        each.number: (float(row[-1]), _since(row, grid))
        for each, row in zip(servers, factors, strict=True)
        if row[-1] > 0
    }


def slower_factors(servers: Sequence[PacedServer], grid: FloatArray) -> FloatArray:
    """Return how many times the others' time per output token each server takes, where it is slower, else 0.

    Shape (servers, times), with times STEP apart: it has to be slower at the one before as well. A larger batch
    is slower, though never by more than it is larger: that much is taken off. A server that computes more prompts
    than the others is not judged.
    """
    found = np.zeros((len(servers), grid.size))
    for group in dict.fromkeys(each.group for each in servers):
        members = [place for place, each in enumerate(servers) if each.group == group]
        if len(members) >= LEAST_SERVERS:
            found[members] = _factors_of_alike([servers[place].pace(grid) for place in members])
    held = np.zeros_like(found)
    held[:, 1:] = np.where(found[:, :-1] > 0, found[:, 1:], 0.0)
    kept = held.copy()
    for later in range(1, KEPT):
        kept[:, later:] = np.where(kept[:, later:] > 0, kept[:, later:], held[:, :-later])
    return kept


def _factors_of_alike(paces: Sequence[TokenPace]) -> FloatArray:
    tokens = np.stack([pace.tokens for pace in paces])
    known = tokens >= LEAST_TOKENS
    seconds, decoding, prefilling, prompts = (
        np.where(known, np.stack([getattr(pace, name) for pace in paces]), np.nan)
        for name in ("seconds", "decoding", "prefilling", "prompt_tokens")
    )
    others = _median_of_others(seconds, high=True)
    larger = np.maximum(decoding, 1.0) / np.maximum(_median_of_others(decoding, high=False), 1.0)
    factors = seconds / others / np.maximum(larger, 1.0)
    more_prompts = prompts > MORE_PROMPTS * _median_of_others(prompts, high=False)
    more_prompts |= prefilling > MORE_PROMPTS * _median_of_others(prefilling, high=False) + MORE_PREFILLING
    enough = known.sum(axis=0) >= LEAST_SERVERS
    return np.where(known & enough & ~more_prompts & (factors >= FACTOR), seconds / others, 0.0)


def _median_of_others(values: FloatArray, *, high: bool) -> FloatArray:
    """Return for each server the median of the known values of the others; of two in the middle the higher or lower."""
    order = np.argsort(values, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(len(values))[:, np.newaxis], values.shape), axis=0)
    others = (~np.isnan(values)).sum(axis=0) - 1
    middle = np.maximum((others if high else others - 1) // 2, 0)
    place = np.minimum(np.where(middle < ranks, middle, middle + 1), len(values) - 1)
    return np.take_along_axis(np.take_along_axis(values, order, axis=0), place, axis=0)


def _since(factors: FloatArray, grid: FloatArray) -> float:
    """Return when the last times at which a server is slower began; NaN if all are."""
    calm = np.flatnonzero(factors <= 0)
    return float(grid[calm[-1]]) if calm.size else math.nan


def slower_text(factor: float) -> str:
    """Return the evidence, as in `4.1 × their time per output token`."""
    return f"{factor:.1f} × their time per output token"
