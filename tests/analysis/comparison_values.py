"""Values and stages of a comparison with the fields relevant to a test."""

from __future__ import annotations

from typing import Any

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.compared_metrics import metric_named
from servetop.analysis.comparison.difference import Basis
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import ArmComparison, ComparedArm, ComparedStage, ComparisonReport
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison.undecided import UndecidedReason
from servetop.analysis.comparison.verdicts import Verdict


def value(key: str, verdict: str, **fields: Any) -> MeasuredDifference:
    """One metric; by default its difference is a loss of 3.1 % with an interval of ±0.5 points."""
    metric = metric_named(key)
    assert metric is not None
    values: dict[str, Any] = {
        "a": 100.0, "b": 96.9, "difference": -0.031, "low": -0.036, "high": -0.026, "probability": 0.5,
        "basis": Basis.BLOCKS, "more_starts": None, "more_seconds": None, "more_than": None, "note": "",
        "reason": UndecidedReason.WIDE_INTERVAL if verdict == "cannot tell" else None,
    }  # fmt: skip
    return MeasuredDifference(
        key=metric.key,
        title=metric.title,
        unit=metric.unit,
        family=metric.family,
        higher_is_better=metric.higher_is_better,
        margin=metric.margin,
        scale=metric.scale,
        verdict=Verdict(verdict),
        **(values | fields),
    )


def stage(*metrics: MeasuredDifference, **fields: Any) -> ComparedStage:
    values: dict[str, Any] = {
        "load": StageLoad(request_rate=8.0), "label": "8 req/s", "request_rate": 8.0,
        "ramp_from": None, "max_concurrency": None, "max_num_seqs": None,
        "seconds_a": 60.0, "seconds_b": 60.0, "requests_a": 480, "requests_b": 482, "starts_a": 1, "starts_b": 1,
        "same_requests": False, "unsteady": "", "needed_seconds": None, "not_measured": (),
    }  # fmt: skip
    return ComparedStage(metrics=metrics, **(values | fields))


def arm(letter: str, **fields: Any) -> ComparedArm:
    values: dict[str, Any] = {
        "name": f"run {letter}", "recordings": (f"{letter}.servetop",), "engine": "vllm", "engine_version": "0.9.1",
        "model": "llama-2-7b", "seeds": (1,), "starts": 1, "seconds": 60.0, "requests": 480, "failed": 0,
        "date": "2026-11-23T18:06:00+00:00", "running": False, "price_per_hour": None,
    }  # fmt: skip
    return ComparedArm(letter=letter, **(values | fields))


def comparison(*stages: ComparedStage, letter: str = "B", **fields: Any) -> ArmComparison:
    values: dict[str, Any] = {
        "verdict": "worse", "headline": f"{letter} is worse", "warnings": (), "differences": (), "unknown": (),
        "other_causes": (), "start_spread": StartSpread.everywhere(0.01), "only_a": (), "only_b": (), "break_even": (),
        "run_pairs": None,
    }  # fmt: skip
    return ArmComparison(b=arm(letter), stages=stages, **(values | fields))


def report(*comparisons: ArmComparison) -> ComparisonReport:
    return ComparisonReport(a=arm("A"), error_rate=0.05, confidence=0.95, comparisons=comparisons)
