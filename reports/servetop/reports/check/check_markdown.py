"""The report of `servetop check` as Markdown, for the summary of a CI step or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.reports.check.check_report import CheckItem, CheckReport, ItemKind
from servetop.reports.check.gate_text import LIMIT_COLUMNS, figures
from servetop.reports.markdown import escaped, table

_SIGNS = {
    CheckOutcome.KEPT: "✅",
    CheckOutcome.BROKEN: "❌",
    CheckOutcome.CANNOT_TELL: "❔",
    CheckOutcome.NOT_APPLICABLE: "➖",
}


def report_markdown(report: CheckReport) -> str:
    """Return the report; every text of a recording is escaped."""
    compared = f" against {_names(report.baselines)}" if report.baselines else ""
    lines = [f"### servetop check: {escaped(report.headline)}", "", f"{_names(report.runs)}{compared}", ""]
    lines += [f"- changed: {escaped(each.key)}: {escaped(each.a)} → {escaped(each.b)}" for each in report.changes]
    lines += [f"- warning: {escaped(each)}" for each in report.warnings]
    lines += [f"- not compared: {escaped(each)}" for each in report.without_counterpart]
    lines += _limits(report.of_kind(ItemKind.LIMIT))
    others = [item for item in report.shown if item.kind is not ItemKind.LIMIT]
    if others:
        rows = [(_outcome(item), escaped(item.title), escaped(item.text)) for item in others]
        lines += ["", *table(("", "check", "found"), rows)]
    return "\n".join([*lines, "", ""])


def _limits(items: Sequence[CheckItem]) -> list[str]:
    if not items:
        return []
    columns = ("", "metric", "load", *LIMIT_COLUMNS)
    rows = [
        (
            _outcome(item),
            escaped(item.gate.limit.metric.key),
            escaped(item.load or "–"),
            *figures(item.gate),
        )
        for item in items
        if item.gate is not None
    ]
    reasons = [
        f"- {_outcome(item)}: {escaped(item.title)}: {escaped(item.text)}"
        for item in items
        if item.outcome is not CheckOutcome.KEPT
    ]
    return ["", *table(columns, rows), "", *reasons]


def _outcome(item: CheckItem) -> str:
    return f"{_SIGNS[item.outcome]} {item.word}"


def _names(paths: Sequence[str]) -> str:
    return ", ".join(escaped(path) for path in paths)
