"""Annotations of GitHub Actions: lines on standard output that it shows beside the changes of a pull request."""

from __future__ import annotations

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.core.text.sanitize import break_ci_commands
from servetop.reports.check.check_report import CheckItem, CheckReport


def annotation_lines(report: CheckReport) -> list[str]:
    """Return an error for each item that failed, and a warning for each that cannot be decided and for each warning."""
    lines = [_line("warning", "servetop check", text) for text in report.warnings]
    for item in report.items:
        level = _level(item)
        if level:
            lines.append(_line(level, f"servetop: {item.title}", f"{item.word}: {item.text}"))
    return lines


def _level(item: CheckItem) -> str:
    """Return the command for an item; empty if it is not worth an annotation."""
    if item.outcome is CheckOutcome.BROKEN:
        return "error" if item.decides else "warning"
    return "warning" if item.outcome is CheckOutcome.CANNOT_TELL and item.decides else ""


def _line(level: str, title: str, text: str) -> str:
    return f"::{level} title={_property(title)}::{_data(break_ci_commands(text))}"


def _data(text: str) -> str:
    """Escape as the toolkit of GitHub Actions does (packages/core/src/command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
