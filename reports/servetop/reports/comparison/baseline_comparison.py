"""Compares a run with its baseline."""

from __future__ import annotations

from dataclasses import replace

from servetop.analysis.comparison.comparison import Comparison, ComparisonOptions, compare
from servetop.analysis.comparison.measured_difference import BASELINE_AND_RUN, named
from servetop.analysis.manifest.manifest_diff import manifest_differences
from servetop.reports.comparison.build_report import report_stages
from servetop.reports.comparison.headline import headline
from servetop.reports.comparison.measured_arm import MeasuredRun
from servetop.reports.comparison.other_causes import causes_in_pair
from servetop.reports.comparison.run_pairs_advice import run_pairs_advice


def compare_with_baseline(baseline: MeasuredRun, run: MeasuredRun) -> Comparison:
    """Compare the stages that both have."""
    comparison = compare([baseline.arm], [run.arm], ComparisonOptions(names=BASELINE_AND_RUN))
    stages = report_stages(comparison)
    advice = run_pairs_advice(baseline, run, stages, manifest_differences(baseline.header, run.header))
    result = headline(BASELINE_AND_RUN[1], stages, advice) if stages else ""
    text = ": ".join(filter(None, (result, advice.command if advice else "")))
    return replace(comparison, causes=cause_texts(baseline, run), headline=text)


def cause_texts(baseline: MeasuredRun, run: MeasuredRun) -> list[str]:
    """Return the kind of each other cause with a phrase about it, as in `cache: the prefix cache had …`."""
    found = causes_in_pair(baseline, run)
    return [f"{each.kind}: {named(each.text, a=BASELINE_AND_RUN[0], b=BASELINE_AND_RUN[1])}" for each in found]
