"""The comparison of one recording with another, for a screen: differences, and other causes for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.comparison.comparison import Comparison

BASELINE_AND_RUN = ("the baseline", "the run")
"""The names of A and B on a screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """A run beside its baseline."""

    comparison: Comparison
    causes: Sequence[str] = ()
    """What else than the change may have caused a difference, one phrase each."""
    headline: str = ""
    """The result in one sentence, with the command that would tell more if there is one."""
