"""The `run-pairs` command that would answer what a comparison leaves open, and about how long it would take."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace

from servetop.analysis.comparison.difference_texts import duration_text
from servetop.analysis.comparison.report_types import ComparedStage, RunPairsAdvice
from servetop.analysis.comparison.sequential import HALF_SPENT, next_look
from servetop.analysis.comparison.undecided import BLOCKED
from servetop.analysis.manifest.manifest_diff import ManifestDifference
from servetop.core.config import StageConfig
from servetop.reports.comparison.measured_arm import MeasuredRun

_PROCESS_SECONDS = 3.0
"""Time to start and end the process of one run."""
_MINUTES = 100
"""Minutes from which on a time is given in hours."""
_USUAL_BUDGET = 1800.0
"""The default of --budget."""


def run_pairs_advice(
    a: MeasuredRun, b: MeasuredRun, stages: Sequence[ComparedStage], differences: Sequence[ManifestDifference]
) -> RunPairsAdvice | None:
    """Return the command that alternates the configurations of two recordings; None if that would tell no more.

    `differences` are those of their manifests: run-pairs demands equal loads and workloads. Most series end between the
    first look and the one by which half of the error rate is spent.
    """
    values = [each for stage in stages for each in stage.metrics]
    first, second = ([_any_batch(each) for each in run.header.config.stages] for run in (a, b))
    if first != second or any(each.is_unlike for each in differences):
        return None
    if not any(each.reason in BLOCKED or each.more_than for each in values):
        return None
    pairs = (next_look(0), HALF_SPENT)
    pair_seconds = a.seconds + b.seconds + 2 * _PROCESS_SECONDS
    low, high = (each * pair_seconds for each in pairs)
    words = ["servetop", "run-pairs", a.path, b.path]
    if high > _USUAL_BUDGET:
        words += ["--budget", f"{math.ceil(high / 3600)}h"]
    return RunPairsAdvice(
        command=shlex.join(words), pairs_low=pairs[0], pairs_high=pairs[1], seconds_low=low, seconds_high=high
    )


def time_text(advice: RunPairsAdvice) -> str:
    """Return the time to expect: `about 2 to 5 min`."""
    low, high = (max(1, math.ceil(each / 60)) for each in (advice.seconds_low, advice.seconds_high))
    if high < _MINUTES:
        return f"about {low} to {high} min" if low < high else f"about {high} min"
    return f"about {duration_text(60.0 * low)} to {duration_text(60.0 * high)}"


def _any_batch(stage: StageConfig) -> StageConfig:
    return replace(stage, max_num_seqs=None)
