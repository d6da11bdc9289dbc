"""A report with items of every kind and outcome, whose texts have characters with a meaning in each output format."""

from __future__ import annotations

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.rule_result import Bearing, RuleResult
from servetop.analysis.manifest.manifest_diff import DifferenceKind, ManifestDifference
from servetop.reports.check.check_report import CheckItem, CheckReport, ItemKind, gate_items, rule_items
from servetop.reports.check.regression_gate import judge_regressions
from servetop.reports.check.regression_limit import parse_regression_limit
from tests.reports.check.gates_for_tests import LOAD, comparison, differing

HOSTILE = "a<b> & \"c\" 'd' | `e` *f* [g](h) 100% ::error::i\nj,k:l\x1b[31m\x00"


def limits() -> list[CheckItem]:
    """One kept, one regression, one that cannot be decided."""
    compared = comparison(
        output_throughput=differing(-0.004, 0.002, a=1203.1),
        p99_ttft_ms=differing(0.25, 0.02, a=420.0),
        mean_tpot_ms=differing(0.02, 0.05, a=31.0),
    )
    wanted = ("output_throughput=2%", "p99_ttft_ms=10%", "mean_tpot_ms=5%")
    gates = judge_regressions(compared, [parse_regression_limit(each) for each in wanted], loads={0: LOAD})
    return gate_items(gates, loads={0: LOAD})


def rule(state: CheckOutcome, *, name: str = "client-bound", text: str = "why") -> RuleResult:
    """A result of the first stage."""
    return RuleResult(name=name, state=state, bearing=Bearing.FIGURES, text=text, stage=0, label="8 req/s", value=1.0)


def report(*, recording: str = "main.servetop") -> CheckReport:
    """A report of a run against a baseline."""
    threshold = CheckItem(
        kind=ItemKind.THRESHOLD, name="p99_ttft_ms<=500", outcome=CheckOutcome.BROKEN, text=HOSTILE, value=525.0
    )
    return CheckReport(
        runs=("pr.servetop",),
        baselines=(recording,),
        items=[*limits(), threshold, *rule_items([rule(CheckOutcome.BROKEN, text=HOSTILE)], decides=False)],
        warnings=(HOSTILE,),
        changes=(ManifestDifference(key="engine.version", kind=DifferenceKind.SETTING, a="0.9|0", b="0.9.1"),),
        without_counterpart=("16 req/s (only in the run)",),
    )


def honesty() -> CheckReport:
    """A report of a run alone, with every state of a rule."""
    states = [rule(state, name=f"rule-{number}") for number, state in enumerate(CheckOutcome)]
    return CheckReport(runs=("pr.servetop",), items=rule_items(states))
