"""The report of `servetop check` as JSON; docs/how-to/gate.md lists the keys."""

from __future__ import annotations

from typing import Any

from servetop.analysis.honesty.rule_result import RuleResult
from servetop.reports.check.check_report import CheckItem, CheckReport
from servetop.reports.gates.regression_gate import RegressionGate


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
        return shared | _gate(item.gate)
    if item.rule is not None:
        return shared | _rule(item.rule)
    return shared | {"value": item.value}


def _gate(gate: RegressionGate) -> dict[str, Any]:
    found = gate.difference
    low, high = (None, None) if found is None else found.interval
    needs = None if gate.needs is None or gate.needs.more_than else gate.needs
    return {
        "metric": gate.limit.metric.key,
        "baseline": None if found is None else found.a,
        "run": None if found is None else found.b,
        "scale": None if found is None else found.scale,
        "difference": None if found is None else found.value,
        "low": low,
        "high": high,
        "limit": None if found is None else gate.allowed,
        "basis": None if found is None else found.basis,
        "probability": gate.probability,
        "needs_starts": None if needs is None else needs.starts,
        "needs_seconds": None if needs is None else needs.seconds,
        "needs_more_than": (gate.needs and gate.needs.more_than) or None,
    }


def _rule(rule: RuleResult) -> dict[str, Any]:
    return {"stage": rule.stage, "value": rule.value, "limit": rule.limit, "bears_on": rule.bearing}
