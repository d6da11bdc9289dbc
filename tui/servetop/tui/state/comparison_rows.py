"""The texts of a comparison for the screen. Imported when there is one: start-up does not need it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.comparison import Comparison
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import ComparedStage
from servetop.analysis.comparison.undecided_texts import undecided_text
from servetop.core.text import formats
from servetop.core.units import MS_PER_S
from servetop.tui.state.comparison_table import ComparisonRow, ComparisonTable, StageVerdicts


def comparison_table(found: Comparison, *, baseline: str, run: str, note: str = "") -> ComparisonTable:
    """Return the texts of a comparison of a run with its baseline, whose names are given."""
    stages = tuple(
        StageVerdicts(load=stage.label, extent=_extent(stage), rows=tuple(map(_row, stage.metrics)))
        for stage in found.stages
    )
    only = ((baseline, found.only_a), (run, found.only_b))
    unmatched = tuple(f"only in {name}: {load.label}" for name, loads in only for load in loads)
    if not stages and not note:
        note = "no stage of the run has the load of a stage of the baseline" if unmatched else "no finished requests"
    return ComparisonTable(
        stages=stages, headline=found.headline, causes=tuple(found.causes), unmatched=unmatched, note=note
    )


def _extent(stage: ComparedStage) -> str:
    parts = [
        f"{stage.seconds_a:.0f} and {stage.seconds_b:.0f} s",
        f"{stage.requests_a:,} and {stage.requests_b:,} requests" + (", the same" if stage.same_requests else ""),
        *([f"not steady: {stage.unsteady}"] if stage.unsteady else []),
    ]
    return " · ".join(parts)


def _row(compared: MeasuredDifference) -> ComparisonRow:
    found, unit = compared.found, compared.unit
    note, brief = (undecided_text(compared, brief=brief) for brief in (False, True))
    if found is None:
        unknown = formats.UNKNOWN
        return ComparisonRow(
            metric=compared.title,
            baseline=unknown,
            run=unknown,
            difference=unknown,
            interval="",
            verdict=compared.verdict,
            note=note,
            brief=brief,
        )
    relative = found.scale is Scale.RELATIVE
    difference = _relative(found.value) if relative else _signed(found.value, unit)
    return ComparisonRow(
        metric=compared.title,
        baseline=_value(found.a, unit),
        run=_value(found.b, unit),
        difference=difference,
        interval=_interval(found.interval, unit, relative=relative),
        verdict=compared.verdict,
        note=note,
        brief=brief,
    )


def _value(value: float, unit: str) -> str:
    match unit:
        case "ms":
            return formats.seconds(value / MS_PER_S)
        case "share":
            return formats.percent(value)
        case "J/tok":
            return formats.joules(value)
    return formats.number(value)


def _relative(share: float) -> str:
    return formats.relative(1 + share, 1.0)


def _signed(value: float, unit: str) -> str:
    """Return a difference in the metric's own unit; shares differ by points."""
    sign = "−" if value < 0 else "+"
    return f"{sign}{abs(value) * 100:.1f} pt" if unit == "share" else sign + _value(abs(value), unit)


def _interval(ends: Sequence[float], unit: str, *, relative: bool) -> str:
    """`−5.2 to −1.0 %`; empty for one without an end."""
    if not all(math.isfinite(end) for end in ends):
        return ""
    low, high = (_relative(end) if relative else _signed(end, unit) for end in ends)
    shared = next((each for each in (" %", " pt", " ms") if low.endswith(each) and high.endswith(each)), "")
    return f"{low.removesuffix(shared)} to {high}"
