"""Figures of several watches side by side; the load was that of others, so no difference has an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REMARK = (
    "the load was that of others and differs between the watches: a difference is not that of the servers alone, and "
    "has no interval"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedWatch:
    """One of the watches."""

    letter: str
    recording: str
    date: str
    """Start in UTC, ISO 8601."""
    backend: str | None
    version: str | None
    model_id: str | None
    servers: int
    """Servers that were listed."""
    headline: str
    """What limited the servers, in one line."""
    error_rate_reason: str | None
    """Why the error rate of all servers together is not known; None if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedServer:
    """The figures of one server, or of all together, in each watch."""

    name: str
    """Empty for all servers of each watch together."""
    figures: Mapping[str, tuple[float | None, ...]]
    """By key, one for each watch; None where the server was not listed, or does not export it.

    None too for a quantile that is only known to be in one bucket of its histogram: `at_least`, `at_most`.
    """
    at_least: Mapping[str, tuple[float | None, ...]]
    """Lower bounds of the buckets that contain such quantiles, by the same keys; none for other figures."""
    at_most: Mapping[str, tuple[float | None, ...]]
    """Their upper bounds, which the last bucket of a histogram does not have."""

    def change(self, key: str) -> float | None:
        """Return the relative change from the first watch to the last; None if one is unknown or the first is 0."""
        first, last = self.figures[key][0], self.figures[key][-1]
        return None if first is None or last is None or not first else last / first - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchComparison:
    """Several watches, side by side."""

    remark: str
    watches: tuple[ComparedWatch, ...]
    servers: tuple[ComparedServer, ...]
    """All servers together first, then each of several by its name."""
