"""The report of `servetop check` as JSON; docs/schema/comparison.json has its keys."""

from __future__ import annotations

from typing import Any

from servetop.analysis.checks.rule_result import RuleResult
from servetop.analysis.summary.summary_json import plain_object
from servetop.reports.check.check_report import CheckItem, CheckReport


def report_json(report: CheckReport) -> dict[str, Any]:
    """Return the report as dictionaries, lists, texts and numbers."""
    return {
        "exit_code": int(report.exit_code),
        "error": report.reason or None,
        "runs": list(report.runs),
        "baselines": list(report.baselines),
        "warnings": list(report.warnings),
        "changes": [{"key": each.key, "baseline": each.a, "run": each.b} for each in report.changes],
        "without_counterpart": list(report.without_counterpart),
        "items": [_item(item) for item in report.items],
    }


def _item(item: CheckItem) -> dict[str, Any]:
    shared = {
        "kind": item.kind,
        "name": item.name,
        "load": item.load or None,
        "recording": item.recording or None,
        "outcome": item.word,
        "decides": item.decides,
        "text": item.text,
    }
    if item.gate is not None:
        return shared | {"measured": None if item.gate.shown is None else plain_object(item.gate.shown)}
    if item.rule is not None:
        return shared | _rule(item.rule)
    return shared | {"value": item.value}


def _rule(rule: RuleResult) -> dict[str, Any]:
    return {"stage": rule.stage, "value": rule.value, "limit": rule.limit, "bears_on": rule.bearing}
