"""A rate that the judgement does not claim is counted, but has no error."""

from __future__ import annotations

import math

from servetop.analysis.diagnosis.run_verdict import RunCause
from tests.judgement.judging import Score, report


def scored(name: str, error: float) -> Score:
    return Score(
        kind="rate overload", name=name, right=True, verdict=RunCause.RATE, onset_error=0.0, knee_error=error,
        sustainable_error=error, kept_excess=math.nan, right_now=1.0, changes=0, alarms=math.nan,
    )  # fmt: skip


def test_a_rate_that_is_not_claimed_is_a_miss_without_an_error() -> None:
    lines = report([scored("rate 0", -0.04), scored("rate 1", math.inf)])
    assert "| knee | 2 (1 no claim) | 50.0% | 4.0% | -4.0% |" in lines
    assert lines[-1] == "- rate 1: knee no claim, sustainable no claim"


def test_runs_without_any_claim_have_no_worst_error() -> None:
    assert "| sustainable | 1 (1 no claim) | 0.0% | – | – |" in report([scored("rate 0", math.inf)])
