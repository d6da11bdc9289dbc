"""The measured differences of two runs as tables, each interval drawn on one axis around no difference."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.analysis.comparison.compared_metrics import Scale
from servetop.analysis.comparison.difference_texts import difference_text, interval_text
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.report_types import ArmComparison, ComparedStage, ComparisonReport
from servetop.analysis.comparison.verdicts import Verdict
from servetop.reports.comparison.comparison_text import SIGNS, legend, name_text, stage_text, value_text, verdict_text
from servetop.reports.page.html_text import Markup, data_table, element, joined

_ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Ends of the axis, as fractions, of which the first that has enough intervals is used."""
_ENOUGH = 0.75
"""Share of the intervals that end within the axis; the others are cut off, and end in an arrow."""
_WIDTH, _HEIGHT, _MIDDLE = 220.0, 14.0, 7.0
_UNKNOWN = "unknown"
"""The text of an interval that excludes nothing, which is not drawn."""
_CLASSES = {Verdict.BETTER: "better", Verdict.WORSE: "worse"}


def difference_tables(report: ComparisonReport) -> Markup:
    """Return a table for each load that A and B both have, and what the verdicts mean.

    With several loads these tables are closed, below one of all loads.
    """
    comparison = report.comparisons[0]
    end = axis_end([each for stage in comparison.stages for each in stage.metrics])
    meaning = element("div", *(element("p", line, class_="note") for line in legend(report)))
    if len(comparison.stages) == 1:
        only = comparison.stages[0]
        return joined(element("h3", only.label), _stage_part(comparison, only, end), meaning)
    parts = [
        element("details", element("summary", f"{stage.label}: intervals"), _stage_part(comparison, stage, end))
        for stage in comparison.stages
    ]
    return joined(element("div", _overview(comparison.stages), meaning, class_="tables"), *parts)


def _overview(stages: Sequence[ComparedStage]) -> Markup:
    """Return the difference and the sign of its verdict of each metric and load."""
    values = [{each.key: each for each in stage.metrics} for stage in stages]
    titles = {each.key: each.title for stage in stages for each in stage.metrics}
    rows = [
        (title, *(_marked(difference_text(each), each) if (each := found.get(key)) else "" for found in values))
        for key, title in titles.items()
    ]
    columns = ("", *(stage.label for stage in stages))
    return element("div", data_table(columns, rows, caption="Differences at each load"), class_="overview")


def _marked(text: str, value: MeasuredDifference) -> Markup:
    """Return a text with the sign of the verdict, which is bold and coloured where it is better or worse."""
    kind = _CLASSES.get(value.verdict)
    sign = f"{text} {SIGNS[value.verdict]}"
    return element("span", sign, class_="open") if kind is None else element("strong", sign, class_=kind)


def _stage_part(comparison: ArmComparison, stage: ComparedStage, end: float) -> Markup:
    letter = comparison.b.letter
    about = stage_text(stage, letter=letter, start_spread=comparison.start_spread)
    heading = element("p", about, class_="note")
    if not stage.metrics:
        return joined(heading, element("p", "Too few requests to compare."))
    axis = f"−{end * 100:g} % · 0 · +{end * 100:g} %"
    columns = ("", "A", letter, f"{letter} − A", "95 % interval", axis, "verdict")
    rows = [_row(each, end) for each in stage.metrics]
    table = data_table(columns, rows, caption=f"Differences at {stage.label}")
    return element("div", heading, table, class_="differences")


def _row(value: MeasuredDifference, end: float) -> tuple[object, ...]:
    verdict = verdict_text(value)
    kind = _CLASSES.get(value.verdict)
    return (
        name_text(value),
        *(value_text(each, value.unit) for each in (value.a, value.b)),
        difference_text(value),
        interval_text(value),
        interval_bar(value, end) or "",
        verdict if kind is None else element("strong", verdict, class_=kind),
    )


def axis_end(values: Sequence[MeasuredDifference]) -> float:
    """Return the end of the axis on which most of these differences are whole, as a fraction."""
    widest = [each for value in values if (each := _widest(value)) is not None]
    for end in _ENDS:
        if sum(each <= end for each in widest) >= _ENOUGH * len(widest):
            return end
    return _ENDS[-1]


def _widest(value: MeasuredDifference) -> float | None:
    """Return the end of an interval that is farthest from no difference; None without a relative interval."""
    found = _relative(value)
    return None if found is None else max(abs(found.low or 0.0), abs(found.high or 0.0), found.margin)


def _relative(value: MeasuredDifference) -> MeasuredDifference | None:
    """Return a difference as a fraction, or in points of a percentage; None if it is neither, or unknown."""
    found = value if value.unit == "share" and value.scale is Scale.ABSOLUTE else value.on_scale(Scale.RELATIVE)
    known = found.difference is not None and interval_text(value) != _UNKNOWN
    return found if known and (found.unit == "share" or found.scale is Scale.RELATIVE) else None


def interval_bar(value: MeasuredDifference, end: float) -> Markup | None:
    """Return the interval as a line with its difference as a point, over the margin around no difference; or None."""
    found = _relative(value)
    if found is None or found.difference is None:
        return None
    low = -end if found.low is None else found.low
    high = end if found.high is None else found.high
    left, right = (_x(each, end) for each in (low, high))
    margin = _x(found.margin, end) - _x(-found.margin, end)
    band = element(
        "rect", x=_text(_x(-found.margin, end)), y="0", width=_text(margin), height=_text(_HEIGHT), class_="margin"
    )
    zero = element("line", x1=_text(_WIDTH / 2), x2=_text(_WIDTH / 2), y1="0", y2=_text(_HEIGHT), class_="zero")
    line = element("line", x1=_text(left), x2=_text(right), y1=_text(_MIDDLE), y2=_text(_MIDDLE), class_="interval")
    marks = [line, *_arrows(low=found.low, high=found.high, end=end)]
    if abs(found.difference) <= end:
        marks.append(element("circle", cx=_text(_x(found.difference, end)), cy=_text(_MIDDLE), r="3.5"))
    shape = element("g", *marks, class_=_CLASSES.get(value.verdict, "open"))
    label = f"{difference_text(value)} {interval_text(value)}"
    return element(
        "svg", band, zero, shape, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img", aria_label=label, class_="bar"
    )


def _arrows(*, low: float | None, high: float | None, end: float) -> list[Markup]:
    """Return an arrow at each end of the axis beyond which the interval goes."""
    found = []
    if low is None or low < -end:
        found.append(element("path", d=f"M8 {_MIDDLE - 4:g} L1 {_MIDDLE:g} L8 {_MIDDLE + 4:g} Z"))
    if high is None or high > end:
        back, tip = _WIDTH - 8, _WIDTH - 1
        found.append(element("path", d=f"M{back:g} {_MIDDLE - 4:g} L{tip:g} {_MIDDLE:g} L{back:g} {_MIDDLE + 4:g} Z"))
    return found


def _x(value: float, end: float) -> float:
    """Return the position of a difference on the axis, at its ends for those beyond."""
    return _WIDTH / 2 * (1 + max(-1.0, min(1.0, value / end)))


def _text(value: float) -> str:
    return f"{value:.1f}"
