"""Which of several servers is much slower than the others of the same model and version."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
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


class SlowerServers:
    """Which servers are slower at one time after the other: the begin is searched only in the time since the last.

    Begins are whole seconds, so that they stay the same at every time of judgement.
    """

    def __init__(self) -> None:
        self._until = math.nan
        """The time up to which begins were searched."""
        self._since: dict[int, float] = {}

    def now(self, servers: Sequence[PacedServer], at: float) -> dict[int, tuple[float, float]]:
        """Return the servers that are slower at a time, each with the factor, and since when: NaN if that is long ago.

        What is returned depends on the time alone, not on the times before.
        """
        until = at // STEP * STEP
        factors = slower_factors(servers, _grid(at, KEPT + 1))[:, -1] if servers else np.zeros(0)
        slow = {each.number: float(factor) for each, factor in zip(servers, factors, strict=True) if factor > 0}
        steps = (until - self._until) / STEP
        since = None
        if slow and 0 <= steps <= _MOST_STEPS:
            since = self._begins(servers, slow, _grid(until, int(steps) + KEPT + 1), skipped=KEPT + 1)
        if slow and since is None:
            since = self._begins(servers, slow, _grid(until, int(min(LOOKBACK + KEPT + 1, until) // STEP)))
        self._until, self._since = until, since or {}
        oldest = until - LOOKBACK
        return {
            number: (factor, begin if (begin := self._since.get(number, math.nan)) >= oldest else math.nan)
            for number, factor in slow.items()
        }

    def _begins(
        self, servers: Sequence[PacedServer], slow: Collection[int], grid: FloatArray, *, skipped: int = 0
    ) -> dict[int, float] | None:
        """Return the last times at which slow servers were not; None if one began before and it is not known when.

        Shape of `grid`: (times,); the first `skipped` of them are compared for the others.
        """
        found = {}
        for each, row in zip(servers, slower_factors(servers, grid)[:, skipped:], strict=True):
            if each.number not in slow:
                continue
            calm = np.flatnonzero(row <= 0)
            if calm.size:
                found[each.number] = float(grid[skipped + calm[-1]])
            elif each.number in self._since:
                found[each.number] = self._since[each.number]
            else:
                return None
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


def _grid(until: float, steps: int) -> FloatArray:
    """Return times up to `until`, STEP apart; shape (steps + 1,)."""
    return until - np.arange(steps, -0.5, -1.0) * STEP


def slower_text(factor: float) -> str:
    """Return the evidence, as in `4.1 × their time per output token`."""
    return f"{factor:.1f} × their time per output token"
