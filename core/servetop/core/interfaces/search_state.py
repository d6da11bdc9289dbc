"""What a search for the largest load knew at one of its decisions, as its recording has it."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.core.events import Action

SEARCH_COMMANDS = frozenset({Action.MARK, Action.SEARCH, Action.STOP, Action.CANCEL})
"""Commands that a search takes; others change the load or the engine that it measures. SEARCH takes the load back."""
SEARCH_REFUSES = "the search chooses the load and keeps the engine as it is: s stops it"
"""The reply to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFigure:
    """What one load showed of one objective, without the transition from the load before."""

    counted: float
    """Samples whose outcome is known."""
    missed: float
    """Samples beyond the limit."""
    low: float
    high: float
    """The 95 % interval of the share of samples that miss the limit; misses that come together count as one.

    Where `mean` is known, that of the mean in seconds; `high` is `inf` while its error is unknown.
    """
    verdict: str
    """`kept`, `missed`, or `open` while the interval contains what is allowed."""
    mean: float | None = None
    """The mean of the samples in seconds, for an objective on a mean; None for others, and without samples."""

    @property
    def share(self) -> float | None:
        """The share of samples that missed the limit; None without samples."""
        return self.missed / self.counted if self.counted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedLoad:
    """One load for as long as it was kept without a change; with several decisions, as of the newest."""

    number: int
    """Number of the load in order of time, from 0."""
    load: float
    """Requests per second, or requests in flight."""
    begin: float
    end: float
    purpose: str
    """`measure`, `recover` or `confirm`."""
    queue: str = ""
    """`grows` if the queue of an open loop grew as long as the load was kept; empty if it did not."""
    figures: tuple[LoadFigure, ...] = ()
    """One for each objective, in the order of `SearchState.objectives`; empty for a load that only recovers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedAnswer:
    """The answer of one `--slo`, as far as it was known."""

    slo: str
    kind: str
    """The kind of the answer by its name in `servetop search --json`, such as `found`."""
    load: float | None = None
    low: float | None = None
    high: float | None = None
    """The 95 % interval of the largest load; None for an end that is not known."""
    binding: int | None = None
    """The place in `SearchState.objectives` of what sets the load; None for the queue, and while nothing does."""
    text: str
    """One sentence; at the end of a search the one that is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedObjective:
    """One objective of a search, and how many samples may miss it."""

    label: str
    """In words: `p99 TTFT ≤ 500 ms`."""
    allowed: float
    """The share of samples that may miss the limit, 0-1; 1 for an objective on a mean."""
    mean_limit: float | None = None
    """What the mean may be at most, in seconds; None for an objective on a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """One decision of a search: the answer as known by then, the load that follows, and the loads that changed."""

    at: float
    """Time up to which the run had been evaluated."""
    seconds_left: float
    """Of the budget."""
    load: float | None
    """The load that follows; None at the end of the search."""
    purpose: str = ""
    """For which purpose it follows, as in `SearchedLoad`; empty at the end."""
    reason: str = ""
    """Why that load follows, in words."""
    objectives: tuple[SearchedObjective, ...] = ()
    answers: tuple[SearchedAnswer, ...] = ()
    """One for each `--slo`."""
    loads: tuple[SearchedLoad, ...] = ()
    """Those that are new or have other figures than in the states before, in order of time."""
    note: str = ""
    """What else must be known of the evidence, such as that the server drifted; empty for nothing."""
