"""The settings of a search for the largest load within objectives."""

from __future__ import annotations

from dataclasses import dataclass, field

REQUEST_RATE, MAX_CONCURRENCY = SEARCHED_LOADS = ("request_rate", "max_concurrency")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """A search; a run that has one tries loads of its own choice in place of planned stages."""

    slo: tuple[str, ...]
    """Tiers of objectives, as in `p99_ttft<500ms, p99_itl<50ms`: those of a tier are to be kept together."""
    over: str = REQUEST_RATE
    """The load that is varied: `request_rate`, or `max_concurrency`, the requests in flight of a closed loop."""
    low: float
    high: float
    """Least and largest load."""
    budget: float = field(default=1200.0, metadata={"unit": "s"})
    """Seconds of load."""
    precision: float = 0.05
    """Share of the answer to which its interval reaches to either side."""
    prior: float | None = None
    """A load near which the answer is expected; None without a prediction."""
    since: float | None = field(default=None, metadata={"unit": "s"})
    """Run time at which a running load was handed to the search; None for a run that is a search from its start."""

    @property
    def concurrency(self) -> bool:
        """Whether the load is a number of requests in flight."""
        return self.over == MAX_CONCURRENCY
