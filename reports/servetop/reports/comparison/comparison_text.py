"""The report of a comparison on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from servetop.analysis.comparison.difference_texts import difference_text, interval_text, margin_text
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import (
    ArmComparison,
    ComparedArm,
    ComparedStage,
    ComparisonReport,
)
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison.verdicts import Verdict
from servetop.analysis.manifest.manifest_diff import ManifestDifference
from servetop.reports.comparison.compared_values import (
    arm_text,
    break_even_lines,
    name_text,
    stage_text,
    value_text,
    verdict_text,
)
from servetop.reports.tables import cell, light_table, titled

NOT_RECORDED = "not recorded"
NO_CAUSE = "none found in cache, lengths, arrived load, client, KV size, GPU clocks, replicas and failures"
_MOST_UNKNOWN = 6
_LONG_VERDICTS = 96
"""Columns from which on there is room for `cannot tell` before what would tell."""


def comparison_parts(report: ComparisonReport, *, width: int) -> list[RenderableType]:
    """Tables and lines in this order: what is compared, what differs besides, the result, each stage."""
    short = width < _LONG_VERDICTS
    arms = [report.a, *(each.b for each in report.comparisons)]
    parts: list[RenderableType] = [arms_table(arms)]
    for each in report.comparisons:
        parts += _comparison_parts(each, several=len(report.comparisons) > 1, short=short)
    parts.append(Text("\n".join(["", *legend(report)]), style="dim"))
    return parts


def arms_table(arms: Sequence[ComparedArm]) -> Table:
    """Return one line for each configuration, folded if space is short."""
    table = Table.grid(padding=(0, 2))
    for arm in arms:
        table.add_row(Text(arm.letter, style="bold"), cell(arm_text(arm)))
    return table


def _comparison_parts(each: ArmComparison, *, several: bool, short: bool) -> Iterator[RenderableType]:
    letter = each.b.letter
    if several:
        yield Text(f"\n{letter} compared with A", style="bold underline")
    for warning in each.warnings:
        yield cell(f"warning: {warning}")
    yield differences_part(each)
    yield titled("Other causes than the change", _lines(cause_lines(each) or [NO_CAUSE]))
    yield titled("Result", _lines([each.headline, *([each.run_pairs.command] if each.run_pairs else [])]))
    for stage in each.stages:
        yield stage_part(stage, letter=letter, start_spread=each.start_spread, short=short)
    if each.break_even:
        yield titled("Break-even", _lines(break_even_lines(each)))
    for name, loads in (("A", each.only_a), (letter, each.only_b)):
        if loads:
            yield cell(f"only in {name}: {', '.join(loads)}")


def differences_part(each: ArmComparison) -> Group:
    """Return the keys of the manifests that differ, as a table."""
    body = _differences_table(each.differences, letter=each.b.letter)
    if not each.differences:
        body = cell("nothing that is recorded of both")
    title = titled(f"What differs between A and {each.b.letter}", body)
    if not each.unknown:
        return title
    more = f" and {len(each.unknown) - _MOST_UNKNOWN} more" if len(each.unknown) > _MOST_UNKNOWN else ""
    return Group(title, cell(f"recorded of one only: {', '.join(each.unknown[:_MOST_UNKNOWN])}{more}"))


def _differences_table(differences: Sequence[ManifestDifference], *, letter: str) -> Table | Text:
    table = light_table("", "A", letter)
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "left", False
    for each in differences:
        table.add_row(*map(cell, (each.key, each.a or NOT_RECORDED, each.b or NOT_RECORDED)))
    return table


def cause_lines(each: ArmComparison) -> list[str]:
    """Return one line for each other cause."""
    return [
        f"{cause.text} (in {cause.pairs} of {cause.of_pairs} pairs of recordings)" if cause.of_pairs > 1 else cause.text
        for cause in each.other_causes
    ]


def stage_part(stage: ComparedStage, *, letter: str, start_spread: StartSpread, short: bool) -> Group:
    """Return the metrics of one stage as a table, with `short` of 80 columns."""
    about = cell(stage_text(stage, letter=letter, start_spread=start_spread))
    title = titled(stage.label, about)
    if not stage.metrics:
        return Group(title, cell("too few requests to compare"))
    table = light_table("", "A", letter, "B − A".replace("B", letter), "95 % interval", "verdict")
    table.columns[-1].justify = "left"
    for value in stage.metrics:
        table.add_row(*_stage_row(value, short=short))
    return Group(title, table)


def _stage_row(value: MeasuredDifference, *, short: bool) -> list[Text]:
    texts = (name_text(value), *(value_text(each, value.unit) for each in (value.a, value.b)))
    last = verdict_text(value, short=short)
    cells = [cell(each) for each in (*texts, difference_text(value), interval_text(value), last)]
    if value.verdict in (Verdict.BETTER, Verdict.WORSE):
        cells[-1].stylize("bold")
    return cells


def _lines(lines: Sequence[str]) -> Text:
    return Text("\n").join(map(cell, lines))


def legend(report: ComparisonReport) -> list[str]:
    """Return what the verdicts mean."""
    return [
        f"▲ better, ▼ worse: wrong in at most {report.error_rate * 100:.2g} % of comparisons of a family of metrics",
        f"= no difference seen: smaller than the margin, {_margins(report)}",
        "? cannot tell: why, and how much more of each run would tell",
    ]


def _margins(report: ComparisonReport) -> str:
    """Return the margins of the first stage, from the smallest."""
    values = [value for each in report.comparisons for stage in each.stages for value in stage.metrics]
    relative = sorted((each.margin, margin_text(each)) for each in values if each.scale == "relative")
    texts = list(dict.fromkeys(text for _, text in relative))
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}" if texts else "of each metric"
