"""What decides the exit code of a check."""

from __future__ import annotations

import pytest

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.rule_result import Bearing, RuleResult
from servetop.analysis.checks.thresholds import parse_threshold
from servetop.core.errors import ExitCode
from servetop.reports.check.check_report import (
    CheckItem,
    CheckReport,
    ItemKind,
    gate_items,
    rule_items,
    threshold_items,
)
from servetop.reports.check.regression_gate import judge_regressions
from servetop.reports.check.regression_limit import parse_regression_limit
from tests.reports.check.gates_for_tests import LOAD, comparison, differing

CLIENT = RuleResult(
    name="client-bound", state=CheckOutcome.BROKEN, bearing=Bearing.FIGURES, text="late", stage=1, label="8 req/s"
)
NUMBERS = {
    "p99_ttft_ms": 640.0,
    "completed": 100,
    "stages": [{"stage": 1, "p99_ttft_ms": 640.0}, {"stage": 2, "p99_ttft_ms": 100.0}],
}


def item(kind: ItemKind, outcome: CheckOutcome, *, decides: bool = True) -> CheckItem:
    return CheckItem(kind=kind, name="x", outcome=outcome, text="why", decides=decides)


LIMIT, RULE = ItemKind.LIMIT, ItemKind.RULE


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ([item(LIMIT, CheckOutcome.KEPT)], ExitCode.OK),
        ([item(LIMIT, CheckOutcome.KEPT), item(LIMIT, CheckOutcome.CANNOT_TELL)], ExitCode.CANNOT_TELL),
        ([item(LIMIT, CheckOutcome.CANNOT_TELL), item(LIMIT, CheckOutcome.BROKEN)], ExitCode.THRESHOLDS),
        ([item(ItemKind.THRESHOLD, CheckOutcome.BROKEN)], ExitCode.THRESHOLDS),
        ([item(LIMIT, CheckOutcome.KEPT), item(RULE, CheckOutcome.BROKEN, decides=False)], ExitCode.OK),
        ([item(RULE, CheckOutcome.KEPT), item(RULE, CheckOutcome.CANNOT_TELL)], ExitCode.OK),
        ([item(RULE, CheckOutcome.KEPT), item(RULE, CheckOutcome.BROKEN)], ExitCode.THRESHOLDS),
        ([item(RULE, CheckOutcome.CANNOT_TELL), item(RULE, CheckOutcome.NOT_APPLICABLE)], ExitCode.CANNOT_TELL),
        ([], ExitCode.CANNOT_TELL),
    ],
)
def test_the_worst_item_decides(items: list[CheckItem], code: ExitCode) -> None:
    report = CheckReport(runs=("run",), items=items)
    assert report.exit_code is code
    assert bool(report.reason) == (code is not ExitCode.OK)


def test_the_reason_is_the_first_item_that_decided() -> None:
    undecided, failed = item(LIMIT, CheckOutcome.CANNOT_TELL), item(LIMIT, CheckOutcome.BROKEN)
    assert CheckReport(runs=("run",), items=[undecided, failed, failed]).reason == "regression: x: why (and 1 more)"


def test_rules_that_do_not_decide_are_shown_only_if_they_are_not_kept() -> None:
    kept, broken = (item(RULE, each, decides=False) for each in (CheckOutcome.KEPT, CheckOutcome.BROKEN))
    report = CheckReport(runs=("run",), items=[item(LIMIT, CheckOutcome.KEPT), kept, broken])
    assert report.of_kind(RULE) == [broken]


def test_a_threshold_on_figures_of_a_broken_rule_cannot_be_told() -> None:
    met = {
        text: [each.outcome for each in threshold_items(parse_threshold(text), NUMBERS, rules=[CLIENT])]
        for text in ("p99_ttft_ms<=500", "completed>=100", "stages[*].p99_ttft_ms<=500", "stages[2].p99_ttft_ms<=50")
    }
    assert met == {
        "p99_ttft_ms<=500": [CheckOutcome.CANNOT_TELL],
        "completed>=100": [CheckOutcome.KEPT],
        "stages[*].p99_ttft_ms<=500": [CheckOutcome.CANNOT_TELL, CheckOutcome.KEPT],
        "stages[2].p99_ttft_ms<=50": [CheckOutcome.BROKEN],
    }


def test_a_threshold_without_a_figure_is_not_met() -> None:
    (found,) = threshold_items(parse_threshold("request_goodput>=1"), NUMBERS, rules=[])
    assert (found.outcome, found.text, found.value) == (CheckOutcome.BROKEN, "not measured", None)


def test_a_threshold_on_all_stages_of_a_run_without_stages_is_not_met() -> None:
    (found,) = threshold_items(parse_threshold("stages[*].completed>=1"), {"stages": []}, rules=[])
    assert (found.outcome, found.text) == (CheckOutcome.BROKEN, "there are no stages")


def test_items_are_titled_with_their_load_and_recording() -> None:
    gates = judge_regressions(
        comparison(p99_ttft_ms=differing(0.0, 0.01)), [parse_regression_limit("p99_ttft_ms=10%")], loads={0: LOAD}
    )
    (limit,) = gate_items(gates, loads={0: LOAD, 3: LOAD})
    (rule,) = rule_items([CLIENT], recording="nightly")
    (alone,) = rule_items([CLIENT], recording="nightly", several_stages=False)
    assert limit.title == "p99_ttft_ms=10% at 8 req/s (stages 0, 3)"
    assert rule.title == "client-bound at 8 req/s (stage 1) in nightly"
    assert alone.title == "client-bound in nightly"
