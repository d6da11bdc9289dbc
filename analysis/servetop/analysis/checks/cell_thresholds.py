"""Judges the cells of a sweep by its thresholds, with the rules of honesty that `servetop check` applies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.honesty import judge_honesty
from servetop.analysis.checks.rule_result import RuleResult
from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.checks.stage_rules import too_few_samples
from servetop.analysis.checks.threshold_text import figure_text, key_words, limit_text, threshold_text
from servetop.analysis.checks.thresholds import Threshold, needs_a_price, parse_cell_threshold, percentile_of
from servetop.analysis.summary.measured_sweep import load_of
from servetop.analysis.summary.summary_json import plain_object
from servetop.analysis.summary.summary_types import StageSummary
from servetop.analysis.sweep.cell_checks import CellChecks, CellOutcome, CheckedCell, ThresholdCheck
from servetop.core.config import RunConfig
from servetop.core.errors import UsageError
from servetop.core.same_fields import from_same_fields


def parse_cell_thresholds(config: RunConfig) -> list[Threshold]:
    """Parse the thresholds of a sweep's cells; UsageError for one that is malformed or cannot be measured."""
    found = []
    for text in config.cell_thresholds:
        try:
            parsed = parse_cell_threshold(text)
        except UsageError as error:
            raise UsageError(f"cell_threshold: {error}") from None
        if needs_a_price(parsed) and not config.prices:
            raise UsageError(f'cell_threshold: {text!r} needs what the server costs: add price = ["2.5/h"]')
        found.append(parsed)
    return found


def judge_cells(
    stages: Sequence[StageSummary], thresholds: Sequence[Threshold], figures: Sequence[StageFigures]
) -> CellChecks:
    """Judge each cell by the mean of its whole repeats; `figures` are those of the stages, to which the rules apply.

    A figure that a broken rule makes worthless, a percentile of too few requests, and a cell that could not be measured
    as a whole decide nothing. A figure that was not measured misses its threshold.
    """
    judge = _Judge(figures)
    groups: dict[StageLoad, list[StageSummary]] = {}
    for stage in stages:
        if stage.counted and not stage.steered:
            groups.setdefault(load_of(stage), []).append(stage)
    cells = [judge.cell(group, thresholds) for group in groups.values()]
    return CellChecks.of(list(map(str, thresholds)), list(map(threshold_text, thresholds)), cells)


class _Judge:
    def __init__(self, figures: Sequence[StageFigures]) -> None:
        self._completed = {each.stage: each.compared_completed for each in figures}
        self._broken: dict[int, list[RuleResult]] = {}
        for result in judge_honesty(figures):
            if result.stage is not None and result.state is CheckOutcome.BROKEN:
                self._broken.setdefault(result.stage, []).append(result)

    def cell(self, group: Sequence[StageSummary], thresholds: Sequence[Threshold]) -> CheckedCell:
        """Judge the repeats of one cell."""
        first, whole = group[0], [stage for stage in group if stage.finished]
        numbers = list(map(plain_object, whole))
        checks = tuple(
            self._check(whole, numbers, each) if whole else _not_whole(group[-1], each) for each in thresholds
        )
        order, outcomes = list(CellOutcome), [each.outcome for each in checks]
        return from_same_fields(
            CheckedCell,
            first,
            stages=tuple(stage.stage for stage in group),
            outcome=min(outcomes, key=order.index),
            thresholds=checks,
        )

    def _check(
        self, whole: Sequence[StageSummary], numbers: Sequence[Mapping[str, object]], threshold: Threshold
    ) -> ThresholdCheck:
        values = [threshold.values(each)[None] for each in numbers]
        known = [float(value) for value in values if value is not None]
        value = sum(known) / len(known) if known and len(known) == len(values) else None
        text = _text(threshold, value)
        obstacle = next(filter(None, (self._obstacle(stage.stage, threshold) for stage in whole)), "")
        if obstacle:
            return _result(threshold, CellOutcome.NOT_DECIDED, value, f"{text}, but {obstacle}")
        if threshold.is_met(value):
            return _result(threshold, CellOutcome.KEPT, value, text)
        return _result(threshold, CellOutcome.MISSED, value, f"{text}, must be {limit_text(threshold)}")

    def _obstacle(self, stage: int, threshold: Threshold) -> str:
        """Return why a figure of a stage decides nothing; empty if it does."""
        percentile, completed = percentile_of(threshold.within), self._completed.get(stage, 0)
        if percentile is not None and completed and 0 < percentile < 100:
            few = too_few_samples(completed, percentile)
            if few:
                return few
        broken = (each for each in self._broken.get(stage, ()) if each.bearing.covers(threshold.within))
        return next((f"{each.name} is broken: {each.text}" for each in broken), "")


def _text(threshold: Threshold, value: float | None) -> str:
    name, unit = key_words(threshold.key)
    return f"{name} is {'not measured' if value is None else f'{figure_text(value, threshold.limit)}{unit}'}"


def _result(threshold: Threshold, outcome: CellOutcome, value: float | None, text: str) -> ThresholdCheck:
    return ThresholdCheck(threshold=str(threshold), outcome=outcome, value=value, text=text)


def _not_whole(stage: StageSummary, threshold: Threshold) -> ThresholdCheck:
    text = f"failed: {stage.failure}" if stage.failure else "cut short"
    return _result(threshold, CellOutcome.NOT_DECIDED, None, text)
