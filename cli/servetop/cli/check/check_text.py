"""The report of `servetop check` as tables and sentences, which are wrapped on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.console import Group
from rich.table import Table

from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.cli.tables import out_tables, stdout_console
from servetop.core.text import formats
from servetop.reports.check.check_report import CheckItem, CheckReport, ItemKind
from servetop.reports.check.gate_text import change_text, interval_text
from servetop.reports.check.regression_gate import RegressionGate
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console

MARKS = {
    CheckOutcome.KEPT: "✓",
    CheckOutcome.BROKEN: "✗",
    CheckOutcome.CANNOT_TELL: "?",
    CheckOutcome.NOT_APPLICABLE: "–",
}
"""Signs that work without colour."""


_WIDTH = 80


def report_text(report: CheckReport) -> None:
    """Print the report to stdout."""
    console.out(f"run        {', '.join(report.runs)}")
    if report.baselines:
        console.out(f"baseline   {', '.join(report.baselines)}")
    for each in report.changes:
        console.out(f"changed    {each.key}: {each.a} → {each.b}")
    out_tables(*_limits(report))
    for kind in (ItemKind.LIMIT, ItemKind.THRESHOLD, ItemKind.RULE):
        items = report.of_kind(kind)
        if items and kind is not ItemKind.LIMIT:
            console.out("", _TITLES[kind])
        console.out(*(line for item in items for line in _lines(item)))
    for load in report.without_counterpart:
        console.out(f"not compared  {load}")
    console.out("", report.headline)


_TITLES = {ItemKind.THRESHOLD: "Thresholds", ItemKind.RULE: "Honesty of the figures"}


def _limits(report: CheckReport) -> list[Group]:
    """One table of limits for each load."""
    loads: dict[str, list[CheckItem]] = {}
    for item in report.of_kind(ItemKind.LIMIT):
        loads.setdefault(item.load, []).append(item)
    return [titled(load or "Without a counterpart", _table(items)) for load, items in loads.items()]


def _table(items: Sequence[CheckItem]) -> Table:
    table = light_table("", "baseline", "run", "change", "95 % interval", "limit")
    for item in items:
        if item.gate is not None:
            table.add_row(cell(f"{MARKS[item.outcome]} {item.gate.limit.metric.key}"), *_figures(item.gate))
    return table


def _figures(gate: RegressionGate) -> tuple[str, ...]:
    found = gate.shown
    levels = (None, None) if found is None else (found.a, found.b)
    return (*map(formats.in_full, levels), change_text(gate), interval_text(gate), gate.limit.text)


def _lines(item: CheckItem) -> list[str]:
    """The sentence of an item; of a limit, only if it is not kept, because the table has the rest."""
    if item.kind is ItemKind.LIMIT:
        return [] if item.outcome is CheckOutcome.KEPT else _wrapped(f"{item.word}: {item.title}: {item.text}")
    return _wrapped(f"{MARKS[item.outcome]} {item.title}: {item.text}")


def _wrapped(text: str) -> list[str]:
    """Wrap a sentence for a terminal; elsewhere its untrusted parts must not begin a line."""
    if not stdout_console().is_terminal:
        return [text]
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
