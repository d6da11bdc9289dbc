"""The report of a comparison on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from servetop.analysis.comparison.compared_metrics import COST_METRIC, metric_named
from servetop.analysis.comparison.difference import ENOUGH_STARTS, Basis
from servetop.analysis.comparison.difference_texts import difference_text, interval_text, margin_text
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import (
    ArmComparison,
    ComparedArm,
    ComparedStage,
    ComparisonReport,
)
from servetop.analysis.comparison.start_spread import SAME, StartSpread
from servetop.analysis.comparison.undecided_texts import undecided_text
from servetop.analysis.comparison.verdicts import Verdict
from servetop.analysis.manifest.manifest_diff import ManifestDifference
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.reports.tables import cell, light_table, titled

NOT_RECORDED = "not recorded"
NO_CAUSE = "none found in cache, lengths, arrived load, client, KV size, GPU clocks, replicas and failures"
_MOST_UNKNOWN = 6
_LONG_VERDICTS = 96
"""Columns from which on there is room for `cannot tell` before what would tell."""
_SHORT = {"output tokens": "output", "preemptions": "preempt."}
_BASES: Mapping[str, str] = {
    Basis.BLOCKS: "errors within the runs",
    Basis.PAIRED_BLOCKS: "errors within the runs, the same requests compared pairwise",
    Basis.STARTS: "errors from the spread between starts or repetitions",
    Basis.PAIRED_STARTS: "errors from the spread between starts, paired by seed",
}
SIGNS: Mapping[str, str] = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.NO_DIFFERENCE: "=",
    Verdict.CANNOT_TELL: "?",
}
"""Signs of the verdicts, which need no colour."""


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
        body = cell("no setting that both recordings have")
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


def arm_text(arm: ComparedArm) -> str:
    """Return what was measured: name, engine, model, seeds, starts, length, requests and date."""
    seeds = f"seed{'s' if len(arm.seeds) > 1 else ''} {', '.join(map(str, arm.seeds))}"
    return " · ".join(
        filter(
            None,
            (
                arm.name,
                f"{arm.engine} {arm.engine_version or ''}".strip(),
                arm.model or "",
                seeds,
                counted(arm.starts, "start"),
                formats.seconds(arm.seconds),
                counted(arm.requests, "request"),
                f"{formats.money(arm.price_per_hour)}/h" if arm.price_per_hour is not None else "",
                f"{arm.date[:16].replace('T', ' ')} UTC",
                "still running" if arm.running else "",
            ),
        )
    )


def stage_text(stage: ComparedStage, *, letter: str, start_spread: StartSpread) -> str:
    """Return how many seconds, requests and starts of a stage were compared, and how its errors were estimated."""
    seconds = (formats.seconds(stage.seconds_a), formats.seconds(stage.seconds_b))
    parts = [
        seconds[0] if seconds[0] == seconds[1] else f"{seconds[0]} of A, {seconds[1]} of {letter}",
        f"{stage.requests_a:,} and {stage.requests_b:,} requests",
        f"{counted(stage.starts_a, 'start')} each"
        if stage.starts_a == stage.starts_b
        else f"{counted(stage.starts_a, 'start')} of A, {stage.starts_b:,} of {letter}",
    ]
    fewest = min(stage.starts)
    if start_spread != SAME and fewest < ENOUGH_STARTS:
        parts.append(f"starts assumed to vary by {'at least ' if fewest > 1 else ''}{_spread_text(start_spread)}")
    bases = {value.basis for value in stage.metrics if value.basis}
    parts += [text for basis, text in _BASES.items() if basis in bases]
    if stage.not_measured:
        parts.append(f"not measured: {', '.join(map(_title, stage.not_measured))}")
    steady = f"not steady: {stage.unsteady}" if stage.unsteady else ""
    return "; ".join(filter(None, (", ".join(parts), steady)))


def _spread_text(spread: StartSpread) -> str:
    """`1 %`, or `5 % (latencies 20 %)`."""
    others, latencies = (f"{each * 100:.2g} %" for each in (spread.others, spread.latencies))
    return others if others == latencies else f"{others} (latencies {latencies})"


def _title(key: str) -> str:
    metric = metric_named(key)
    return key if metric is None else metric.title


def name_text(value: MeasuredDifference) -> str:
    """Return the name of a metric with its unit: `output tok/s`, `TTFT p99 ms`, `KV usage`."""
    name = _SHORT.get(value.title, value.title)
    return name if value.unit == "share" else f"{name} {value.unit}"


def value_text(value: float | None, unit: str) -> str:
    """Return a value in its unit."""
    if value is not None and unit == "share":
        return f"{value * 100:.1f} %"
    return formats.money(value) if unit == COST_METRIC.unit else formats.in_full(value)


def verdict_text(value: MeasuredDifference, *, short: bool = False) -> str:
    """Return the verdict after its sign, with the reason if it cannot tell; with `short` then nothing else."""
    sign = SIGNS[value.verdict]
    if value.verdict != Verdict.CANNOT_TELL:
        return f"{sign} {value.verdict}"
    if short:
        return f"{sign} {undecided_text(value, brief=True)}"
    return f"{sign} {value.verdict}: {undecided_text(value)}"


def break_even_lines(each: ArmComparison) -> list[str]:
    """Return one line for each stage with costs: the price at which the configuration costs as much per token as A."""
    return [
        f"{found.label}: {each.b.letter} costs as much per token as A at {formats.money(found.per_hour)}/h "
        f"[{formats.money(found.low)}, {'∞' if found.high is None else formats.money(found.high)}]"
        for found in each.break_even
    ]
