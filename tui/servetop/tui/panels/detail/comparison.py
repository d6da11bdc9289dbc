"""The comparison with the baseline: every metric of every stage with its difference, interval and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.reactive import reactive

from servetop.analysis.comparison.verdicts import Verdict
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.log_rows import wrapped
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard, shortened
from servetop.tui.panels.panel import Panel
from servetop.tui.state.baseline import STYLE
from servetop.tui.state.comparison_table import ComparisonRow, ComparisonTable, StageVerdicts
from servetop.tui.state.frame import Frame

MARKS = {
    Verdict.BETTER: ("▲", "good"),
    Verdict.WORSE: ("▼", "bad"),
    Verdict.NO_DIFFERENCE: ("=", ""),
    Verdict.CANNOT_TELL: ("?", "muted"),
}
"""Symbol and style of each verdict."""
_WIDE = 108
"""Cells from which the columns are further apart."""
_SHORT = {Verdict.NO_DIFFERENCE: "no difference"}
"""Verdicts that are longer than a narrow column."""


class ComparisonColumns(NamedTuple):
    """Widths in cells of the columns before the verdict."""

    metric: int
    value: int
    difference: int
    interval: int


def columns_for(width: int) -> ComparisonColumns:
    """The verdict takes what is left."""
    return ComparisonColumns(18, 10, 10, 20) if width >= _WIDE else ComparisonColumns(15, 8, 8, 18)


class ComparisonPanel(Panel):
    """The rows of the comparison, from row `top` on."""

    top: reactive[int] = reactive(0)

    def title(self, frame: Frame) -> Sequence[TextRow]:
        name = [] if frame.baseline is None else [(" with ", ""), (sanitize_line(frame.baseline.name), STYLE)]
        title: TextRow = [("Comparison", "title"), *name]
        if not frame.comparison.stages:
            return [title]
        named = self.size.width >= _WIDE
        return [title, *(_counted(frame.comparison, verdict, named=named) for verdict in MARKS)]

    def subtitle(self, frame: Frame) -> TextRow:
        return [(frame.comparison.note, "muted")] if frame.comparison.stages else []

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        rows = comparison_rows(frame.comparison, width)
        if not frame.comparison.stages:
            return [*rows, *placard(sanitize_line(frame.comparison.note), width=width, height=height - len(rows))]
        names = ("run", "baseline") if frame.baseline is None else frame.baseline.names
        top = min(self.top, max(len(rows) - height + 1, 0))
        return [heading(*names, width), *rows[top : top + height - 1]]

    def scroll(self, lines: int) -> None:
        """Scroll down (positive) or up by lines, within the rows."""
        if self.frame is not None:
            rows = len(comparison_rows(self.frame.comparison, self.size.width)) + 1
            self.top = min(max(self.top + lines, 0), max(0, rows - self.size.height))
            self.watch_frame(self.frame)


def _counted(table: ComparisonTable, verdict: Verdict, *, named: bool) -> TextRow:
    mark, style = MARKS[verdict]
    return [(f"{mark} {table.count(verdict)}", style), (f" {verdict.value}" if named else "", "")]


def heading(run: str, baseline: str, width: int) -> TextRow:
    """Return the names of the columns, with those of both runs above their values."""
    columns = columns_for(width)
    row: list[Run] = [
        (" " * columns.metric, ""),
        (f"{shortened(sanitize_line(baseline), columns.value - 1):>{columns.value}}", STYLE),
        (f"{shortened(sanitize_line(run), columns.value - 1):>{columns.value}}", "strong"),
        (f"{'Δ':>{columns.difference}}{'95 % interval':>{columns.interval}}  verdict", "muted"),
    ]
    return fitted(row, width)


def comparison_rows(table: ComparisonTable, width: int) -> list[TextRow]:
    """Return the result, other causes of it, each stage with its rows, then the loads that only one of the runs has."""
    rows: list[TextRow] = wrapped([], [(sanitize_line(table.headline), "strong")], width) if table.headline else []
    for text in table.causes:
        rows += wrapped([("▲ other cause: ", "warn")], [(sanitize_line(text), "")], width)
    for stage in table.stages:
        rows += [_stage_row(stage, width), *(metric_row(row, width) for row in stage.rows)]
    return [*rows, *(fitted([(sanitize_line(text), "muted")], width) for text in table.unmatched)]


def _stage_row(stage: StageVerdicts, width: int) -> TextRow:
    return fitted([(stage.load, "title"), (f"  {sanitize_line(stage.extent)}", "muted")], width)


def metric_row(row: ComparisonRow, width: int) -> TextRow:
    """Metric, both values, difference, interval, and the verdict, or why there is none."""
    columns, (mark, style) = columns_for(width), MARKS[row.verdict]
    differs = row.verdict in (Verdict.BETTER, Verdict.WORSE)
    verdict = row.verdict.value if width >= _WIDE else _SHORT.get(row.verdict, row.verdict.value)
    reason = row.note if width >= _WIDE else row.brief
    return fitted(
        [
            (f" {shortened(row.metric, columns.metric - 1):<{columns.metric - 1}}", "" if differs else "muted"),
            (f"{row.baseline:>{columns.value}}", ""),
            (f"{row.run:>{columns.value}}", "strong" if differs else ""),
            (f"{row.difference:>{columns.difference}}", "strong" if differs else ""),
            (f"{row.interval:>{columns.interval}}", "muted"),
            (f"  {mark} {sanitize_line(reason or verdict)}", style),
        ],
        width,
    )
