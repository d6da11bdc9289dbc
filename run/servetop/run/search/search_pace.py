"""How fast a search rises, and how long it keeps a load at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from servetop.run.search.search_evidence import SearchLimits

STEP = 1.6
"""Factor between loads on the way up, ..."""
_LARGE_STEP, _FEW = 2.5, 10.0
"""... and in a closed loop while no more requests than these are in flight.

A load that is too high leaves no backlog there, but many requests that are sent at once disturb each other for long.
"""
_CHUNK, _FIRST = 5.0, 8.0
"""Seconds after which a load is judged again, and least seconds of a load on the way up, ..."""
_SHORT, _LEAST_PART = 320.0, 0.25
"""... which become shorter with the budget of a closed loop below these seconds, down to this part.

Otherwise the way up takes half of a budget of two minutes. Steps and parts were chosen on closed loops that do not
belong to the judged ones: synthetic ones from number 10 (`tests/judgement/curve_server.py`), simulated ones below 10.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPace:
    """The pace of one search."""

    closed: bool
    """Whether loads are numbers of requests in flight."""
    chunk: float
    """Seconds after which a load is judged again."""
    first: float
    """Least seconds of a load on the way up."""

    @classmethod
    def of(cls, limits: SearchLimits) -> Self:
        """Return the pace of a search within some limits."""
        part = min(1.0, max(_LEAST_PART, limits.budget / _SHORT)) if limits.concurrency else 1.0
        return cls(closed=limits.concurrency, chunk=part * _CHUNK, first=part * _FIRST)

    def step(self, load: float) -> float:
        """Return the factor from a load to the next one on the way up."""
        return _LARGE_STEP if self.closed and load <= _FEW else STEP
