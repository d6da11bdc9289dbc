"""The report of a comparison as Markdown, for pull requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servetop.analysis.comparison.difference_texts import difference_text, interval_text
from servetop.analysis.comparison.report_types import ArmComparison, ComparedStage, ComparisonReport
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.reports.comparison.comparison_text import (
    NOT_RECORDED,
    arm_text,
    break_even_lines,
    cause_lines,
    legend,
    name_text,
    stage_text,
    value_text,
    verdict_text,
)
from servetop.reports.markdown import escaped, table


def markdown_lines(report: ComparisonReport) -> list[str]:
    """Return the result first, then what differs, then a table for each stage."""
    arms = [report.a, *(each.b for each in report.comparisons)]
    lines = [line for each in report.comparisons for line in (*_result_lines(each), "")]
    lines += [f"- {arm.letter}: {escaped(arm_text(arm))}" for arm in arms]
    for each in report.comparisons:
        lines += ["", *_comparison_lines(each)]
    return [*lines, "", *(f"<sub>{escaped(line)}</sub><br>" for line in legend(report))]


def _result_lines(each: ArmComparison) -> Iterator[str]:
    yield f"**{escaped(each.headline)}**"
    if each.run_pairs:
        yield from ("", f"    {each.run_pairs.command}")


def _comparison_lines(each: ArmComparison) -> Iterator[str]:
    letter = each.b.letter
    yield f"### {letter} compared with A"
    yield ""
    warnings = [f"⚠ {text}" for text in (*each.warnings, *cause_lines(each))]
    yield from (f"- {escaped(text)}" for text in warnings)
    if warnings:
        yield ""
    if each.differences:
        rows = [(each.key, each.a or NOT_RECORDED, each.b or NOT_RECORDED) for each in each.differences]
        yield from _table(("changed", "A", letter), rows)
        yield ""
    for stage in each.stages:
        yield from _stage_lines(stage, letter=letter, start_spread=each.start_spread)
        yield ""
    yield from (f"- break-even: {escaped(line)}" for line in break_even_lines(each))
    for name, loads in (("A", each.only_a), (letter, each.only_b)):
        if loads:
            yield f"Only in {name}: {escaped(', '.join(loads))}"


def _stage_lines(stage: ComparedStage, *, letter: str, start_spread: StartSpread) -> Iterator[str]:
    about = stage_text(stage, letter=letter, start_spread=start_spread)
    yield f"**{escaped(stage.label)}**: {escaped(about)}"
    yield ""
    rows = [
        (
            name_text(value),
            *(value_text(each, value.unit) for each in (value.a, value.b)),
            difference_text(value),
            interval_text(value),
            verdict_text(value),
        )
        for value in stage.metrics
    ]
    yield from _table(("metric", "A", letter, "difference", "95 % interval", "verdict"), rows)


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    align = [":--", *["--:"] * (len(heading) - 2), ":--"]
    return table([*map(escaped, heading)], [[*map(escaped, each)] for each in rows], align=align)
