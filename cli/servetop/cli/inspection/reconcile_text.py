"""The report of a reconciliation as tables: a waterfall of each figure, with bars that need no colour."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from servetop.analysis.reconciliation.definitions import LATENCIES
from servetop.analysis.reconciliation.reconcile import NAMES, percent_of
from servetop.analysis.reconciliation.waterfall import DifferenceStep, DifferenceWaterfall
from servetop.core.text.counted import counted
from servetop.core.text.sanitize import sanitize_line
from servetop.reports.tables import cell, titled
from servetop.run.reconcile.reconcile_report import ReconciledInput, ReconciliationReport

_BAR = 5
"""Columns of a bar to each side of its axis."""
_LEAST_BAR = 0.001
"""Part of a figure below which all bars of its waterfall are shortened."""


def reconciliation_parts(report: ReconciliationReport) -> Iterator[RenderableType]:
    """Yield what was read, a waterfall of each figure, and the conclusion."""
    for name, each in (("A", report.a), ("B", report.b)):
        yield Text("\n".join(_input_lines(name, each)))
    for waterfall in report.waterfalls:
        yield _waterfall(waterfall, report)
    if report.missing:
        names = ", ".join(NAMES[each] for each in report.missing)
        yield Text(f"\nnot in both results, or of fewer than 30 requests: {names}")
    yield Text(f"\n{report.conclusion}")


def _input_lines(name: str, each: ReconciledInput) -> Iterator[str]:
    tool = " ".join(filter(None, (each.tool, each.version)))
    requests = f"{counted(each.requests, 'request')}, {each.completed:,} completed"
    yield sanitize_line(f"{name}  {each.file}: {tool}, {requests}")
    if each.truth is not None:
        yield sanitize_line(f"   the server's times: {each.truth}")
    yield from (sanitize_line(f"   {remark}") for remark in each.remarks)


def _waterfall(found: DifferenceWaterfall, report: ReconciliationReport) -> Group:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    unit = ", ms" if found.metric in LATENCIES else ""
    for head in ("step", "figure", "effect", "%"):
        table.add_column(head, justify="left" if head == "step" else "right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("evidence", overflow="fold")
    sizes = [abs(each.effect) for each in found.steps if each.effect is not None]
    largest = max([*sizes, _LEAST_BAR * (abs(found.a) + abs(found.b)) / 2])
    table.add_row("A", _figure(found.a), "", "", "", cell(_tool(report.a)))
    reached = found.a
    for step in found.steps:
        reached += step.effect or 0.0
        table.add_row(*_row(found, step, reached=reached, largest=largest))
    table.add_row("B", _figure(found.b), "", "", "", cell(_tool(report.b)))
    return titled(f"{NAMES[found.metric]}{unit}", table)


def _row(
    found: DifferenceWaterfall, step: DifferenceStep, *, reached: float, largest: float
) -> tuple[str, str, str, str, str, Text]:
    if step.effect is None:
        return str(step.kind), "", "not known", "", "", cell(step.evidence)
    interval = ""
    if step.low is not None and step.high is not None:
        interval = f" ±{_figure((step.high - step.low) / 2)}"
    percent = f"{percent_of(found, step.effect) + 0.0:+.2f}".replace("-0.00", "+0.00").replace("-", "−")
    bar = _bar(step.effect, largest)
    return str(step.kind), _figure(reached), f"{_signed(step.effect)}{interval}", percent, bar, cell(step.evidence)


def _bar(effect: float, largest: float) -> str:
    length = round(_BAR * abs(effect) / largest) if largest > 0 else 0
    left, right = ("", "█" * length) if effect >= 0 else ("█" * length, "")
    return f"{left:>{_BAR}}│{right:<{_BAR}}"


def _figure(value: float) -> str:
    return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.1f}"


def _signed(value: float) -> str:
    amount = _figure(abs(value))
    return f"{'−' if value < 0 and amount.strip('0.') else '+'}{amount}"


def _tool(each: ReconciledInput) -> str:
    return " ".join(filter(None, (each.tool, each.version)))
