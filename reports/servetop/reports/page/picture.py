"""The result of a run as one picture, an SVG for a chat or a paper: the verdict, the main charts, the trust."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.units import MS_PER_S
from servetop.reports.page.answer_section import subject_parts, verdict_sentence
from servetop.reports.page.chart_specs import ChartSpec, dash_numbers, time_charts
from servetop.reports.page.html_text import Markup, element
from servetop.reports.page.line_chart import RunTime, SvgLine, line_chart
from servetop.reports.page.report_page import ReportPage
from servetop.reports.page.time_columns import TimeColumns
from servetop.reports.page.watch_page import WatchPage
from servetop.reports.summary.summary_lines import trust_lines

WIDTH, MARGIN = 1200, 30
MOST_CHARTS = 6
"""Charts over time in one picture; the page has all of them."""
MOST_LINES = 6
"""Lines of one chart, as of a watch of many servers."""
_ORDER = ("load", "tokens", "ttft", "tpot", "queue", "kv")
_INK, _SOFT = "#1b1f24", "#5b6570"
_FONT = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif"
_SCALES = {"share": (100.0, "%"), "seconds": (1.0, "s"), "rate": (1.0, ""), "count": (1.0, "")}
_RATES = {"load": "req/s"}
"""Units of rates by chart, where the names of its lines have none."""
_WITHOUT_RIGHT = {"KV cache used, and preemptions": "KV cache used", "GPU utilisation and power": "GPU utilisation"}
"""Titles of charts of which the axis on the right is left out."""
_CHART_WIDTH, _CHART_HEIGHT, _ROW = 560, 190, 250


def run_picture(page: ReportPage) -> str:
    """Return the picture of a run: verdict or first answer, charts over time, latencies of stages, trust."""
    summary = page.summary
    ends = [(each.begin, page.record.until if each.end is None else each.end) for each in page.record.episodes]
    charts = [_over_time(page.time, each, RunTime(shaded=ends)) for each in _chosen(time_charts(page.time))]
    if (stages := _of_stages(summary)) is not None:
        charts.append(stages)
    return _picture(" · ".join(subject_parts(page)), verdict_sentence(page), trust_lines(summary), charts)


def watch_picture(page: WatchPage) -> str:
    """Return the picture of a watch: its headline, and the charts that its servers export."""
    charts = [_over_time(page.time, each, RunTime()) for each in _chosen(page.charts)]
    subject = " · ".join(filter(None, (page.summary.label or page.name, page.summary.url, "servetop watch")))
    note = "The load was that of others: every figure is the server's own."
    return _picture(subject, page.summary.headline, [note], charts)


def _chosen(charts: Sequence[ChartSpec]) -> list[ChartSpec]:
    """Return the main charts in the order of _ORDER; of other charts, as a watch has them, the first ones."""
    by_name = {each.name: each for each in charts}
    main = [by_name[name] for name in _ORDER if name in by_name]
    return [*main, *(each for each in charts if each.name not in _ORDER)][:MOST_CHARTS]


def _over_time(time: TimeColumns, chart: ChartSpec, across: RunTime) -> tuple[str, Markup]:
    factor, unit = _SCALES.get(chart.unit, (1.0, chart.unit))
    at = time.columns["at"].tolist()
    shown = [each for each in chart.lines[:MOST_LINES] if not each.right]
    lines = [
        SvgLine(name=each.label, x=at, y=(time.columns[each.column] * factor).tolist(), dash=dash)
        for each, dash in zip(shown, dash_numbers(shown), strict=True)
    ]
    drawn = line_chart(
        lines,
        x_unit=across,
        y_unit=_RATES.get(chart.name, unit),
        logarithmic=chart.logarithmic,
        width=_CHART_WIDTH,
        height=_CHART_HEIGHT,
    )
    return _WITHOUT_RIGHT.get(chart.title, chart.title), drawn


def _of_stages(summary: RunSummary) -> tuple[str, Markup] | None:
    """Return the chart of the latencies of each stage; None for fewer than two stages with a latency."""
    stages = [each for each in summary.stages if each.measured.requests.latency("ttft", "p99") is not None]
    if len(stages) < 2:
        return None
    lines = []
    for metric, title in (("ttft", "TTFT"), ("tpot", "TPOT")):
        for statistic in ("p50", "p99"):
            found = [each.measured.requests.latency(metric, statistic) for each in stages]
            values = [np.nan if each is None else each / MS_PER_S for each in found]
            if not np.isnan(values).all():
                numbers = [float(each) for each in range(1, len(values) + 1)]
                dash = int(statistic == "p50") + (2 if metric == "tpot" else 0)
                lines.append(SvgLine(name=f"{title} {statistic}", x=numbers, y=values, dash=dash))
    return "Latency of each stage, in order", line_chart(
        lines, x_unit="stage", y_unit="s", logarithmic=True, width=_CHART_WIDTH, height=_CHART_HEIGHT
    )


def _picture(subject: str, title: str, trust: Sequence[str], charts: Sequence[tuple[str, Markup]]) -> str:
    parts, bottom = list[Markup](), MARGIN / 2
    for text, size, weight, colour, most in (
        (subject, 14, 400, _SOFT, 1), (title, 23, 650, _INK, 4), *((each, 13, 400, _SOFT, 2) for each in trust[:3]),
    ):  # fmt: skip
        for line in _wrapped(" ".join(text.split()), size=size, most=most):
            bottom += size * 1.3
            parts.append(_line(line, x=MARGIN, y=bottom, size=size, weight=weight, colour=colour))
        bottom += 6
    bottom += 14
    rows = -(-len(charts) // 2)
    for place, (name, drawn) in enumerate(charts):
        x, y = MARGIN + place % 2 * (_CHART_WIDTH + 20), bottom + place // 2 * _ROW
        parts.append(_line(name, x=x, y=y + 12, size=14, weight=600, colour=_INK))
        parts.append(element("g", drawn, transform=f"translate({x:g} {y + 20:g})"))
    height = round(bottom + rows * _ROW + MARGIN / 2)
    paper = element("rect", width=WIDTH, height=height, fill="#ffffff")
    return (
        element(
            "svg", element("title", title), paper, *parts, xmlns="http://www.w3.org/2000/svg", width=WIDTH,
            height=height, viewBox=f"0 0 {WIDTH} {height}", color=_INK, font_family=_FONT,
        )
        + "\n"
    )  # fmt: skip


def _wrapped(text: str, *, size: int, most: int) -> Iterator[str]:
    """Yield the lines of a text of that size in pixels, whose letters are taken for 0.56 of it wide."""
    width = int((WIDTH - 2 * MARGIN) / (0.56 * size))
    yield from textwrap.wrap(text, width=width, max_lines=most, placeholder=" …")


def _line(text: str, *, x: float, y: float, size: int, weight: int, colour: str) -> Markup:
    return element("text", text, x=f"{x:g}", y=f"{y:.1f}", font_size=size, font_weight=weight, fill=colour)
