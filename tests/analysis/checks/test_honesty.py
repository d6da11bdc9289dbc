"""The rules applied to recordings of virtual runs, and the choice of rules."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.honesty import RULE_NAMES, chosen_rules, judge_honesty, worst_by_rule
from servetop.analysis.checks.rule_result import Bearing, RuleResult
from servetop.analysis.checks.stage_figures import StageFigures
from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_comparison import RecordedColumns
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, Outage, OutageKind, VirtualRunPlan
from tests.cli.summaries import TRUST
from tests.judgement.recordings import write_recording
from tests.simulator.virtual_run.runs import plan_of


def states(plan: VirtualRunPlan, folder: Path) -> dict[str, CheckOutcome]:
    path = folder / "run.servetop"
    write_recording(run_virtually(plan), path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages = RecordedColumns.load(reader).stage_figures()
        return {each.name: each.state for each in worst_by_rule(judge_honesty(stages))}


SHORT = StageConfig(request_rate=5.0, duration=12.0)


def test_a_healthy_run_keeps_every_rule_but_that_of_its_length(tmp_path: Path) -> None:
    found = states(plan_of(SHORT), tmp_path)
    assert {name for name, state in found.items() if state is CheckOutcome.BROKEN} == {"p99-samples"}
    assert {name for name, state in found.items() if state is CheckOutcome.KEPT} >= {
        "client-bound", "failures", "littles-law", "token-counts", "token-source", "token-rate",
    }  # fmt: skip


def test_a_slow_client_is_found(tmp_path: Path) -> None:
    assert states(plan_of(SHORT, client=ClientCosts(per_request=0.3)), tmp_path)["client-bound"] is CheckOutcome.BROKEN


def test_failed_requests_are_found(tmp_path: Path) -> None:
    outage = Outage(kind=OutageKind.HTTP_500, start=6.0, share=0.3)
    assert states(plan_of(SHORT, outages=(outage,)), tmp_path)["failures"] is CheckOutcome.BROKEN


def test_rules_are_chosen_by_name() -> None:
    assert [rule.name for rule in chosen_rules(["steady", "failures"])] == ["failures", "steady"]
    assert [rule.name for rule in chosen_rules(ignored=["steady"])] == [name for name in RULE_NAMES if name != "steady"]
    with pytest.raises(UsageError, match="'stedy' is not a rule: use client-bound, failures"):
        chosen_rules(ignored=["stedy"])


def test_each_stage_with_requests_is_judged() -> None:
    counts = {"idle": 0, "busy": 500}
    stages = [
        StageFigures(
            stage=0, label=label, requests=count, completed=count, failed=0, compared_completed=count, trust=TRUST
        )
        for label, count in counts.items()
    ]
    assert {each.label for each in judge_honesty(stages)} == {"busy"}


def test_the_worst_stage_represents_a_rule() -> None:
    def result(label: str, state: CheckOutcome, value: float | None = None) -> RuleResult:
        return RuleResult(name="x", state=state, bearing=Bearing.FIGURES, value=value, limit=1.0, text="", label=label)

    kept, near, broken = (
        result("a", CheckOutcome.KEPT, 0.1),
        result("b", CheckOutcome.KEPT, -0.9),
        result("c", CheckOutcome.BROKEN),
    )
    none = result("d", CheckOutcome.NOT_APPLICABLE)
    assert [each.label for each in worst_by_rule([none, kept, near, broken])] == ["c"]
    assert [each.label for each in worst_by_rule([none, kept, near])] == ["b"]
