"""What the comparison screen shows: the rows of each stage that both runs have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servetop.analysis.comparison.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One metric of one stage, in texts."""

    metric: str
    baseline: str
    """Its value in the baseline."""
    run: str
    """Its value in the run on the screen."""
    difference: str
    """From the baseline to the run: relative, or in the metric's own unit."""
    interval: str
    """The interval that contains the true difference with 95 % confidence; empty if unknown."""
    verdict: Verdict
    note: str = ""
    """Why a metric is undecided, and what would tell."""
    brief: str = ""
    """The more important of both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageVerdicts:
    """A stage that both runs have, with its rows."""

    load: str
    extent: str
    """Seconds and requests of both runs, and why a window is not steady."""
    rows: tuple[ComparisonRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonTable:
    """What the comparison screen shows."""

    stages: tuple[StageVerdicts, ...] = ()
    headline: str = ""
    """The result in one sentence."""
    causes: tuple[str, ...] = ()
    """What else than the change may have caused a difference, one phrase each."""
    unmatched: tuple[str, ...] = ()
    """Loads that only one of the runs has, with its name."""
    note: str = ""
    """Why there are no rows, or not all of them yet; empty if there is nothing to say."""

    def count(self, verdict: Verdict) -> int:
        """Return the number of rows with this verdict."""
        return sum(row.verdict is verdict for stage in self.stages for row in stage.rows)
