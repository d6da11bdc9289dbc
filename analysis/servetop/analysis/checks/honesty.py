"""Applies the rules to the stages of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.rule_result import RuleResult
from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.checks.stage_rules import RULES, HonestyRule
from servetop.core.errors import UsageError
from servetop.core.same_fields import from_same_fields

RULE_NAMES = tuple(rule.name for rule in RULES)


def chosen_rules(only: Sequence[str] = (), ignored: Sequence[str] = ()) -> tuple[HonestyRule, ...]:
    """Return the rules named by `only` (all if empty) without those `ignored`; UsageError for an unknown name."""
    unknown = next((name for name in (*only, *ignored) if name not in RULE_NAMES), None)
    if unknown is not None:
        raise UsageError(f"{unknown!r} is not a rule: use {', '.join(RULE_NAMES)}")
    return tuple(rule for rule in RULES if (not only or rule.name in only) and rule.name not in ignored)


def judge_honesty(stages: Sequence[StageFigures], *, rules: Sequence[HonestyRule] = RULES) -> tuple[RuleResult, ...]:
    """Apply the rules to every stage with requests."""
    return tuple(_result(rule, stage) for rule in rules for stage in stages if stage.requests)


def worst_by_rule(results: Iterable[RuleResult]) -> tuple[RuleResult, ...]:
    """Return one result for each rule: that of the stage that keeps it worst."""
    order = list(CheckOutcome)

    def rank(result: RuleResult) -> tuple[int, float]:
        return order.index(result.state), -result.strain

    found: dict[str, RuleResult] = {}
    for each in results:
        known = found.get(each.name)
        if known is None or rank(each) < rank(known):
            found[each.name] = each
    return tuple(found.values())


def _result(rule: HonestyRule, stage: StageFigures) -> RuleResult:
    return from_same_fields(RuleResult, rule, stage, rule.judge(stage))
