"""Which of several servers is much slower than the others of the same model and version."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.fleet.batch_curve import REMEMBERED, slower_than_batch
from servetop.analysis.fleet.pace_table import PaceTable, median_of_others
from servetop.analysis.fleet.token_times import TokenPace, TokenTimes
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray

SLOWER = Bottleneck.SLOWER.value
"""The state of such a server."""
FACTOR = 1.5
"""Times the others' time per output token from which a server is slower."""
LEAST_SERVERS = 3
"""Servers that can be compared: of two it is not known which one is as it should be."""
STEP = 1.0
"""Seconds between the two readings on which a server has to be slower."""
KEPT = 3
"""Readings for which it still counts as slower afterwards, so that the state does not flicker."""
_BEFORE = np.arange(REMEMBERED, 0, -1.0) * STEP
"""Seconds before a time at which the remembered readings are."""
_BLOCK = 3600
"""Readings that are compared at once, so that a day of many servers takes little memory."""
LOOKBACK = 600.0
"""Seconds in which the begin is searched."""
_MOST_STEPS = 60
"""Readings since the last time up to which only these are compared."""


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
    grid = _grid_until(at)
    factors = slower_factors(servers, grid)
    return {
        each.number: (float(row[-1]), _since(row, grid))
        for each, row in zip(servers, factors, strict=True)
        if row[-1] > 0
    }


class SlowerServers:
    """Which servers are slower at one time after the other: the begin is searched only in the time since the last."""

    def __init__(self) -> None:
        self._at = math.nan
        self._found: dict[int, tuple[float, float]] = {}

    def now(self, servers: Sequence[PacedServer], at: float) -> dict[int, tuple[float, float]]:
        """Return what `slower_now` does."""
        steps = (at - self._at) / STEP
        found = None
        if 0 < steps <= _MOST_STEPS and steps.is_integer():  # the same times are compared as before
            found = self._continued(servers, at, steps=int(steps))
        self._at, self._found = at, slower_now(servers, at) if found is None else found
        return self._found

    def _continued(
        self, servers: Sequence[PacedServer], at: float, *, steps: int
    ) -> dict[int, tuple[float, float]] | None:
        """Return the same from what was found before; None if that does not suffice."""
        grid = at - np.arange(steps + KEPT + 1, -0.5, -1.0) * STEP
        oldest, found = float(_grid_until(at)[0]), dict[int, tuple[float, float]]()
        for each, row in zip(servers, slower_factors(servers, grid), strict=True):
            if not row[-1] > 0:
                continue
            since = _since(row[KEPT + 1 :], grid[KEPT + 1 :])
            if math.isnan(since):
                if each.number not in self._found:
                    return None
                since = self._found[each.number][1]
            found[each.number] = float(row[-1]), max(since, oldest)
        return found


def slower_factors(servers: Sequence[PacedServer], grid: FloatArray) -> FloatArray:
    """Return how many times the others' time per output token each server takes, where it is slower, else 0.

    Shape (servers, times), with times STEP apart: it has to be slower at the one before as well. A larger batch
    is slower, though never by more than it is larger: that much is taken off, or what the others took for larger
    batches in the last minute (`batch_curve`). A server that computes more prompts than they do now, and did in that
    minute, is not judged.
    """
    found = np.zeros((len(servers), grid.size))
    for group in dict.fromkeys(each.group for each in servers):
        members = [place for place, each in enumerate(servers) if each.group == group]
        if len(members) >= LEAST_SERVERS:
            found[members] = _factors_of_alike([servers[place] for place in members], grid)
    held = np.zeros_like(found)
    held[:, 1:] = np.where(found[:, :-1] > 0, found[:, 1:], 0.0)
    kept = held.copy()
    for later in range(1, KEPT):
        kept[:, later:] = np.where(kept[:, later:] > 0, kept[:, later:], held[:, :-later])
    return kept


def _factors_of_alike(servers: Sequence[PacedServer], grid: FloatArray) -> FloatArray:
    """Return the factors of servers that can be compared, each time for itself."""
    table = PaceTable.of([each.pace(grid) for each in servers])
    usual = table.usual_seconds
    enough = table.known.sum(axis=0) >= LEAST_SERVERS
    longer = table.known & enough & (table.seconds >= FACTOR * usual)
    others = np.maximum(median_of_others(table.decoding, high=False), 1.0)
    larger = np.maximum(np.maximum(table.decoding, 1.0) / others, 1.0)
    found = longer & ~table.more_prompts & (table.seconds / usual / larger >= FACTOR)
    for start in range(0, grid.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        if (longer & ~found)[:, part].any():
            remembered = PaceTable.of([each.pace(grid[start] - _BEFORE) for each in servers])
            slower = slower_than_batch(table.part(part).after(remembered), FACTOR)[:, _BEFORE.size :]
            found[:, part] |= longer[:, part] & slower
    return np.where(found, table.seconds / usual, 0.0)


def _grid_until(at: float) -> FloatArray:
    """Return the times up to `at` in which the begin is searched, STEP apart."""
    return at - np.arange(min(LOOKBACK, max(at, STEP)) // STEP, -0.5, -1.0) * STEP


def _since(factors: FloatArray, grid: FloatArray) -> float:
    """Return when the last times at which a server is slower began; NaN if all are."""
    calm = np.flatnonzero(factors <= 0)
    return float(grid[calm[-1]]) if calm.size else math.nan


def slower_text(factor: float) -> str:
    """Return the evidence, as in `4.1 × their time per output token`."""
    return f"{factor:.1f} × their time per output token"
