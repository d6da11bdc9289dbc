"""The answer of a search: the largest load within the objectives with its interval, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from servetop.run.search.drift import Drift

QUEUE = "queue"
"""What binds a load above which the queue would grow before an objective is missed."""


class AnswerKind(StrEnum):
    """Whether a search found the largest load, and if not, why."""

    FOUND = "found"
    """A load with an interval as narrow as asked."""
    CLIFF = "cliff"
    """The figures jump between two loads that are close to each other."""
    WIDE = "wide"
    """The budget ended with a wider interval: `flat` curves, or a short budget."""
    ABOVE = "above"
    """The largest load allowed is within the objectives."""
    BELOW = "below"
    """The least load allowed is not."""
    DRIFTED = "drifted"
    """The server became slower or faster during the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierAnswer:
    """The answer for one objective, or for all together."""

    kind: AnswerKind
    load: float | None
    """The best estimate; None for `above`, `below` and `drifted`."""
    low: float
    high: float
    """The 95 % interval of the load; `inf` for `above` and while no load was too high, 0 for `below`.

    It is 0 to `inf` for `drifted`.
    """
    binding: str
    """What sets the load: the text of an objective, or `queue` where the queue would grow first."""
    drift: Drift | None = None
    """For `drifted`, the load at which it shows; `binding` is then the objective that it shows in."""
    minutes_left: float | None = None
    """For `wide`, estimated further minutes until the interval is as narrow as asked; None if not estimated."""
