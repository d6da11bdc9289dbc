"""Tests whether a run is worse than a baseline by more than a limit (non-inferiority), and what it would cost to tell.

*Kept*: the 95 % interval of the difference lies within the limit, which a run that is worse by more than the limit
achieves with a probability of at most 2.5 %. This is not corrected for the number of gates: a run passes only if all
are kept, so the gate with the largest loss bounds the error (Berger, Technometrics 24, 1982). *Regression*: the
difference is beyond the limit; corrected by Holm's method, so that one of all gates is wrong with a probability of at
most 5 %. Everything else *cannot be decided*. Source of the test: ICH Harmonised Guideline E9, section 3.3.2 (1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.comparison import Comparison
from servetop.analysis.comparison.difference import Difference
from servetop.analysis.comparison.measured_difference import MeasuredDifference, with_cost
from servetop.analysis.comparison.report_types import ComparedStage
from servetop.analysis.comparison.undecided import UndecidedReason, undecided_reason
from servetop.analysis.comparison.undecided_texts import measured_text, stage_length_text
from servetop.analysis.comparison.verdicts import ERROR_RATE, Cost, Verdict, cost_of_answer, holm
from servetop.analysis.statistics.student_t import upper_tail
from servetop.reports.check.regression_limit import RegressionLimit

_VERDICTS = {CheckOutcome.BROKEN: Verdict.WORSE, CheckOutcome.CANNOT_TELL: Verdict.CANNOT_TELL}
_UNEQUAL = 0.10
"""Relative difference of lengths from which on a drift makes two runs incomparable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionGate:
    """One limit, applied to one load."""

    limit: RegressionLimit
    load: StageLoad | None
    """None if the stage has no counterpart in the baseline."""
    measured: MeasuredDifference | None
    outcome: CheckOutcome = CheckOutcome.CANNOT_TELL
    probability: float = 1.0
    """Of such a difference if the run were worse by exactly the limit, corrected for the number of gates."""
    needs: Cost | None = None
    """What would distinguish half of the limit from the limit, or bound the loss at all, if it cannot be decided."""
    note: str = ""
    """Why it cannot be decided, if not for the width of the interval."""

    @property
    def difference(self) -> Difference | None:
        """The difference with its errors; None without one."""
        return None if self.measured is None else self.measured.found

    @property
    def allowed(self) -> float:
        """The limit on the scale of the difference; NaN without one."""
        return math.nan if self.difference is None else self.limit.on_scale_of(self.difference)

    @property
    def shown(self) -> MeasuredDifference | None:
        """The difference on the scale of the limit, which is its margin, with what would tell; None if not compared."""
        if self.measured is None:
            return None
        scale = Scale.RELATIVE if self.limit.relative else Scale.ABSOLUTE
        if self.difference is None:
            return replace(self.measured, margin=self.limit.amount, scale=scale)
        known = self.measured.verdict is not Verdict.CANNOT_TELL
        verdict = _VERDICTS.get(self.outcome, self.measured.verdict if known else Verdict.NO_DIFFERENCE)
        undecided = self.outcome is CheckOutcome.CANNOT_TELL
        found = replace(
            with_cost(self.measured, self.needs or Cost()),
            margin=self.allowed,
            verdict=verdict,
            probability=self.probability,
            reason=(self.measured.reason or UndecidedReason.WIDE_INTERVAL) if undecided else None,
            note=self.note,
        )
        return found.on_scale(scale)

    @property
    def largest_loss(self) -> float:
        """The worst end of the interval, on the scale of the difference: the smallest limit that would be kept."""
        if self.difference is None:
            return math.inf
        low, high = self.difference.interval
        return max(0.0, -low if self.limit.metric.higher_is_better else high)


def judge_regressions(
    comparison: Comparison,
    limits: Sequence[RegressionLimit],
    *,
    loads: Mapping[int, StageLoad],
    obstacle: Callable[[StageLoad, RegressionLimit], str] | None = None,
) -> tuple[RegressionGate, ...]:
    """Judge every limit on every stage that it is for and that has a counterpart.

    `loads` are those of the run's stages by number; `obstacle` returns why figures cannot be believed, or nothing.
    """
    gates = []
    for limit in limits:
        wanted = None if limit.stage is None else loads[limit.stage]
        stages = [each for each in comparison.stages if wanted is None or same_load(each.load, wanted)]
        gates += [_found(limit, each, why=obstacle(each.load, limit) if obstacle else "") for each in stages]
        if not stages:
            note = "the baseline has no stage with this load"
            gates.append(RegressionGate(limit=limit, load=None, measured=None, note=note))
    return _judged(gates, comparison)


def same_load(compared: StageLoad, stage: StageLoad) -> bool:
    """Whether a compared load is that of a stage, or a part of its ramp."""
    batches = {compared.max_num_seqs, stage.max_num_seqs}
    same = (compared.max_concurrency, compared.settings) == (stage.max_concurrency, stage.settings)
    if not same or (len(batches) > 1 and None not in batches):
        return False
    if compared.ramp_from is None or stage.ramp_from is None:
        return compared.ramp_from == stage.ramp_from and compared.request_rate == stage.request_rate
    low, high = sorted((stage.ramp_from, stage.request_rate))
    return (
        low <= min(compared.ramp_from, compared.request_rate) and max(compared.ramp_from, compared.request_rate) <= high
    )


def _found(limit: RegressionLimit, stage: ComparedStage, *, why: str) -> RegressionGate:
    measured = stage.metric(limit.metric.key)
    if measured is None:
        note = why or "not measured, or of too few requests"
        return RegressionGate(limit=limit, load=stage.load, measured=None, note=note)
    missing = "" if measured.found is not None else measured.note
    return RegressionGate(limit=limit, load=stage.load, measured=measured, note=why or missing or _drift(stage))


def _drift(stage: ComparedStage) -> str:
    """Return why two unsteady stages are not comparable; empty if they sent equally many requests, or for as long."""
    if not stage.unsteady:
        return ""
    for lengths in (stage.seconds, stage.requests):
        a, b = (length / max(1, starts) for length, starts in zip(lengths, stage.starts, strict=True))
        if abs(b - a) <= _UNEQUAL * a:
            return ""
    return f"unequally long, and not steady ({stage.unsteady}): measure both for as long"


def _judged(gates: Sequence[RegressionGate], comparison: Comparison) -> tuple[RegressionGate, ...]:
    """Judge the gates that nothing blocks, corrected for their number."""
    open_gates = [each for each in gates if each.difference is not None and not each.note]
    adjusted = holm([_beyond(each) for each in open_gates])
    stages = {stage.load: stage for stage in comparison.stages}
    by_gate = dict(zip(map(id, open_gates), adjusted, strict=True))
    return tuple(
        _outcome(each, by_gate[id(each)], stage=stages[each.load], tests=len(open_gates))
        if id(each) in by_gate and each.load is not None
        else each
        for each in gates
    )


def _beyond(gate: RegressionGate) -> float:
    """Return the probability of such a difference if the run were worse by the limit."""
    if gate.difference is None:
        return 1.0
    below, above = gate.difference.deviation(gate.allowed)
    probability = upper_tail(below if gate.limit.metric.higher_is_better else above, gate.difference.df)
    return 1.0 if math.isnan(probability) else probability


def _outcome(gate: RegressionGate, probability: float, *, stage: ComparedStage, tests: int) -> RegressionGate:
    judged = replace(gate, probability=probability)
    if gate.largest_loss <= gate.allowed:
        return replace(judged, outcome=CheckOutcome.KEPT)
    if probability < ERROR_RATE:
        return replace(judged, outcome=CheckOutcome.BROKEN)
    difference = gate.difference
    if difference is None or not gate.allowed > 0:
        zero = f"the baseline is 0: give the limit in {gate.limit.metric.unit}"
        return replace(judged, note=zero if gate.limit.amount else "any difference exceeds a limit of 0: allow a loss")
    low, high = difference.interval
    if high - low < gate.allowed / 2:
        return replace(judged, note="the loss is too close to the limit")
    if obstacle := _too_short_or_unsteady(stage, difference, margin=gate.allowed):
        return replace(judged, note=obstacle)
    seconds = min(a / max(1, n) for a, n in zip(stage.seconds, stage.starts, strict=True))
    needs = cost_of_answer(difference, margin=gate.allowed, seconds=seconds, tests=tests)
    unknown = needs is None or difference.shortage > 1
    return replace(judged, needs=needs, note="too few requests to say how uncertain it is" if unknown else "")


def _too_short_or_unsteady(stage: ComparedStage, difference: Difference, *, margin: float) -> str:
    """Return what in the stage makes an estimate of the cost meaningless, and what to do; empty if nothing does."""
    needed, unsteady = stage.needed_seconds, stage.unsteady
    moving = bool(unsteady) and stage.ramp_from is None
    reason = undecided_reason(difference, margin=margin, too_short=needed is not None, unsteady=moving)
    if reason is UndecidedReason.TOO_SHORT and needed is not None:
        measured = measured_text(stage.seconds, stage.requests)
        return f"too short ({measured}): measure {stage_length_text(needed)} or more of each, or use run-pairs"
    return f"not steady ({unsteady}): use run-pairs" if reason is UndecidedReason.NOT_STEADY else ""
