"""The clauses of the headline of a comparison, each with what must be known of a metric to be counted among them."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import ComparedStage
from servetop.analysis.comparison.verdicts import Verdict
from servetop.analysis.diagnosis.clauses import Clause, clause
from servetop.analysis.diagnosis.observation import Observation as O

HEADLINE_CLAUSES: Mapping[str, Clause] = {
    Verdict.WORSE: clause("B is worse: TTFT p99 +12 % [+8.0, +16] at 8 req/s", {O.BOTH_FIGURES, O.ERROR}),
    Verdict.BETTER: clause("B is better: TPOT mean −5.0 % [−6.0, −4.0] at 8 req/s", {O.BOTH_FIGURES, O.ERROR}),
    Verdict.NO_DIFFERENCE: clause("no difference seen in 2 metrics", {O.BOTH_FIGURES, O.ERROR}),
    Verdict.CANNOT_TELL: clause("cannot tell in 1 metric"),
    "blocked": clause("too short to compare (10 s and 174 requests of each)", {O.STAGE_LENGTH}),
    "cost": clause("2 h 10 min more of each would decide it", {O.ERROR}),
}
"""All clauses of the headline; those of a verdict by its name."""


def observed_of(stage: ComparedStage, value: MeasuredDifference) -> frozenset[O]:
    """Return what is known of one metric of one stage in both runs."""
    seen = {
        O.BOTH_FIGURES: value.difference is not None,
        O.ERROR: value.basis is not None,
        O.STAGE_LENGTH: min(stage.seconds) > 0,
    }
    return frozenset(each for each, known in seen.items() if known)
