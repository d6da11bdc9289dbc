"""The figures of one stage to which the rules are applied."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.analysis.summary.trust_types import TrustSummary
from servetop.analysis.trust.cache_check import CacheCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """One stage with load, except warm-ups; `compared` is its steady window, or the whole stage without one."""

    stage: int
    """Number of the stage, as in the summary."""
    label: str
    requests: int
    completed: int
    failed: int
    compared_completed: int
    trust: TrustSummary
    """The trust meter of the compared part."""
    steady_seconds: float | None = None
    """Length of the steady window; None without one."""
    unsteady: str = ""
    """Why there is none."""
    cache: CacheCheck = CacheCheck()
    """The hit rate of the prefix cache over the stage, and that of the workload."""
    generating: float | None = None
    """Mean number of requests that wait for their next token: gaps between tokens per second × mean gap."""
    in_flight: float | None = None
    """Mean number of requests in flight over the same time, by the request rows."""
