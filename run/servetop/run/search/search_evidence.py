"""What a search knows: the loads tried so far and what became of each request. Times are run times in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile

from servetop.core.arrays import FloatArray

WAITED = ("ttft", "e2el", "ttfot")
"""Latencies of which a request in flight shows a lower bound: what it has waited."""


class Purpose(StrEnum):
    """Why a load is kept."""

    MEASURE = "measure"
    RECOVER = "recover"
    """Until the backlog of a load that was too high has been served; nothing is estimated from it."""
    CONFIRM = "confirm"
    """At the end of a search, at the load that it claims: as nothing was chosen from its figures, they are unbiased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadObjective:
    """One objective: a share of the samples of a metric within a limit, or their mean within it."""

    text: str
    """The objective in the words of `--slo`, as in `p99_ttft<500ms`."""
    metric: str
    """`ttft`, `tpot`, `itl`, `e2el`, `error_rate`, or `goodput`: requests that meet all of `--goodput`."""
    limit: float | None
    """Seconds; None for `error_rate` and `goodput`."""
    share: float
    """Share of the samples that must be within the limit, 0-1: 0.99 of p99; 0 of a mean."""
    mean: bool = False
    """Whether the mean of the samples must be within the limit."""

    @property
    def decided(self) -> float:
        """Seconds since a request was due after which it has met or missed the limit; NaN if only its end tells."""
        return self.limit or math.nan if self.metric in WAITED else math.nan

    @property
    def allowed(self) -> float:
        """Share of the samples that may be beyond the limit, 0-1."""
        return round(1 - self.share, 12)

    @property
    def most(self) -> float:
        """What its figure may be at most: the mean in seconds, or the share of samples beyond the limit."""
        return self.limit or 0.0 if self.mean else self.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A load that was kept for a time, after which the next one followed without a pause or a drain."""

    load: float
    """Requests per second, or requests in flight."""
    begin: float
    end: float
    purpose: Purpose = Purpose.MEASURE
    restarts: int = 0
    """How often the server had restarted before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """The probes in order of time, and all requests in order of `due`; shape of the arrays: (requests,)."""

    probes: tuple[Probe, ...]
    due: FloatArray
    done: FloatArray
    """End of each request; NaN while it is in flight."""
    counted: tuple[FloatArray, ...]
    """For each objective, the samples of a request: 1, or its token gaps for ITL; 0 while they are unknown.

    A request whose limit has passed without its first token counts at once, and a failed one as missed."""
    missed: tuple[FloatArray, ...]
    """For each objective, how many of these samples were beyond the limit."""
    sums: tuple[FloatArray, ...] = ()
    """For each objective on a mean, the sum of the counted samples of a request in seconds; 0 for other objectives.

    Empty: all objectives are on shares. A request in flight beyond the limit has what it has waited.
    """
    levels: tuple[FloatArray, ...] = ()
    """For each objective on a percentile of a latency, ln(latency / limit) of each request; NaN if it has none.

    That of a request in flight is of the time that it has waited, and that of one that failed is beyond any limit. NaN
    for all requests: the objective has no latency of a request. Empty: no objective has one.
    """
    limits: tuple[float, ...] = ()
    """For each objective, the limit of its latency in seconds; NaN without one. Empty where `levels` is."""
    decided: tuple[float, ...] = ()
    """For each objective, the seconds since a request was due after which it is known to have met or missed its limit,
    however long it lasts; NaN if that is known at its end only. Empty where `levels` is."""
    earlier: tuple[Probe, ...] = ()
    """Probes before the server last restarted: they tell nothing of the server as it is, but their time is used."""
    restarted_at: float | None = None
    """When it last restarted; None if no probe was before that."""
    others: float | None = None
    """Share of the requests that the server finished which are not from this search; None if none is known to be."""

    @property
    def seconds(self) -> float:
        """The seconds of load of all probes, the earlier ones included."""
        return sum(probe.end - probe.begin for probe in (*self.earlier, *self.probes))

    def seconds_of_last(self, purpose: Purpose) -> float:
        """Return for how long the last probes had a purpose; 0 if the last one has another."""
        last = takewhile(lambda probe: probe.purpose is purpose, reversed(self.probes))
        return sum(probe.end - probe.begin for probe in last)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Where a search may look, and for how long."""

    low: float
    high: float
    """Least and largest load."""
    budget: float
    """Seconds of load, the confirmation included."""
    concurrency: bool = False
    """The load is a number of requests in flight instead of a rate."""
    precision: float = 0.05
    """The search ends when its interval reaches no farther than this share to either side of the answer."""
    prior: float | None = None
    """A load near which the answer is expected, if something predicts it; a wrong one costs time only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextProbe:
    """The load to keep next, and for how many seconds; the same load again continues the probe before."""

    load: float
    seconds: float
    purpose: Purpose = Purpose.MEASURE
    reason: str = field(default="", compare=False)
    """Why, in words."""
