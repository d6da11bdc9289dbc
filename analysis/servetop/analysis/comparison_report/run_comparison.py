"""The comparison of one recording with another, for a screen: differences, and other causes for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.comparison.comparison import Comparison, compare
from servetop.analysis.comparison_report.measured_arm import MeasuredRun
from servetop.analysis.comparison_report.other_causes import causes_in_pair, named


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """A run beside its baseline."""

    comparison: Comparison
    causes: Sequence[str] = ()
    """What else than the change may have caused a difference, one phrase each."""


def compare_with_baseline(baseline: MeasuredRun, run: MeasuredRun) -> RunComparison:
    """Compare the stages that both have."""
    return RunComparison(comparison=compare([baseline.arm], [run.arm]), causes=cause_texts(baseline, run))


def cause_texts(baseline: MeasuredRun, run: MeasuredRun) -> list[str]:
    """Return the kind of each other cause with a phrase about it, as in `cache: the prefix cache had …`."""
    found = causes_in_pair(baseline, run)
    return [f"{each.kind}: {named(each.text, a='the baseline', b='the run')}" for each in found]
