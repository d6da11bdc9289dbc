"""The comparison of one recording with another, for a screen: differences, and other causes for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.comparison.comparison import Comparison, ComparisonOptions, compare
from servetop.analysis.comparison_report.build_report import report_stages
from servetop.analysis.comparison_report.headline import headline
from servetop.analysis.comparison_report.measured_arm import MeasuredRun
from servetop.analysis.comparison_report.other_causes import causes_in_pair, named
from servetop.analysis.comparison_report.run_pairs_advice import run_pairs_advice

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


def compare_with_baseline(baseline: MeasuredRun, run: MeasuredRun) -> RunComparison:
    """Compare the stages that both have."""
    options = ComparisonOptions()
    comparison = compare([baseline.arm], [run.arm], options)
    stages = report_stages(comparison, options, names=BASELINE_AND_RUN)
    advice = run_pairs_advice(baseline, run, stages)
    result = headline(BASELINE_AND_RUN[1], stages, advice) if stages else ""
    text = ": ".join(filter(None, (result, advice.command if advice else "")))
    return RunComparison(comparison=comparison, causes=cause_texts(baseline, run), headline=text)


def cause_texts(baseline: MeasuredRun, run: MeasuredRun) -> list[str]:
    """Return the kind of each other cause with a phrase about it, as in `cache: the prefix cache had …`."""
    found = causes_in_pair(baseline, run)
    return [f"{each.kind}: {named(each.text, a=BASELINE_AND_RUN[0], b=BASELINE_AND_RUN[1])}" for each in found]
