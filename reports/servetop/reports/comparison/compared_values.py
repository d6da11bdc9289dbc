"""The texts of a comparison that text and Markdown have in common."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.comparison.compared_metrics import COST_METRIC, metric_named
from servetop.analysis.comparison.difference import ENOUGH_STARTS, Basis
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import ArmComparison, ComparedArm, ComparedStage
from servetop.analysis.comparison.start_spread import SAME, StartSpread
from servetop.analysis.comparison.undecided_texts import undecided_text
from servetop.analysis.comparison.verdicts import Verdict
from servetop.core.text import formats
from servetop.core.text.counted import counted

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
