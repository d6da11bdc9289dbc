"""The charts of a page as plain text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.chart_specs import ChartSpec, time_charts
from servetop.reports.page.latency_charts import LOAD_TITLE, load_unit, stage_points, sweep_lines
from servetop.reports.page.time_columns import TimeColumns, load_columns
from servetop.reports.page.watched_columns import recorded_watch_charts
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.summary import run_summary
from servetop.tui.drawing.plot_marks import SPAN, START, TimeMarks
from servetop.tui.drawing.report_plots import (
    FRAME_WIDTH,
    LINE_MARKERS,
    MARKERS,
    Points,
    ValueAxis,
    curves,
    legend,
    lines_over_time,
)

LATENCY = "latency"
"""Latency against load, which is not over time."""
MARKS = "marks"
"""The list of stages and episodes above the charts over time."""
DEFAULT_CHARTS = ("load", "tokens", "ttft", "itl", "queue", "kv", LATENCY)
_LABELS: Mapping[str, Callable[[float], str]] = {"seconds": formats.axis_seconds, "share": formats.whole_percent}
"""Formats of the vertical axis by unit, where it is not a plain number."""
_TITLES = {
    "kv_usage": "KV cache used",
    "preemptions": "Preemptions per second",
    "gpu_power": "GPU power, W",
    "gpu_utilisation": "GPU utilisation",
}
"""Titles of the lines of a chart with two axes, by column: each axis is a chart of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChart:
    """One chart as lines of plain text."""

    name: str
    title: str
    text: str
    markers: Sequence[str] = LINE_MARKERS
    """The characters of its lines, in order."""


def terminal_charts(reader: RecordingReader, *, names: Sequence[str], width: int) -> list[TextChart]:
    """Return the named charts of which the recording has values, in `width` columns (40 or more).

    Those over time are in the order of the page, below a list of the stages and episodes that they mark.
    """
    record, specs = recorded_run(reader), None
    if record.header.config.watch is None:
        time = load_columns(record, reader.gpu_samples(), most=width - FRAME_WIDTH)
    else:
        time, specs = recorded_watch_charts(reader, record, most=width - FRAME_WIDTH)
    over_time = [each for each in time_charts(time, specs) if each.name in names]
    charts = _time_charts(record, time, over_time, width=width) if over_time else []
    if LATENCY in names and len(record.loads) > 1:
        charts += _latency_charts(reader, width=width)
    return charts


def _time_charts(record: RunRecord, time: TimeColumns, charts: Sequence[ChartSpec], *, width: int) -> list[TextChart]:
    marks = _marks(record, time, columns=width - FRAME_WIDTH)
    margin = " " * (FRAME_WIDTH - 1)
    listed = "\n".join(f"{margin}{row}" for row in marks.rows())
    drawn = [
        TextChart(name=chart.name, title=each.title, text=_drawn(each, time, marks, width=width))
        for chart in charts
        for each in _one_axis_each(chart, time)
    ]
    legend_of_marks = TextChart(name=MARKS, title=f"Stages ({START}) and episodes ({SPAN})", text=listed)
    return [legend_of_marks, *drawn] if listed else drawn


def _marks(record: RunRecord, time: TimeColumns, *, columns: int) -> TimeMarks:
    at = time.columns["at"]
    window = (float(at[0]) - time.seconds / 2, float(at[-1]) + time.seconds / 2)
    spans = [(each.kind.value, each.begin, record.until if each.end is None else each.end) for each in record.episodes]
    return TimeMarks(
        window=window,
        columns=columns,
        starts=[
            (each.at, sanitize_line(each.label))
            for each in record.loads
            if window[0] - time.seconds <= each.at <= window[1]
        ],
        spans=[each for each in spans if each[2] >= window[0] and each[1] <= window[1]],
    )


def _one_axis_each(chart: ChartSpec, time: TimeColumns) -> Iterator[ChartSpec]:
    """Yield a chart for each line of one with two axes, else the chart itself; none on the right that is always 0."""
    if chart.right_unit is None:
        yield chart
        return
    for each in chart.lines:
        if not each.right or np.nanmax(time.columns[each.column], initial=0) > 0:
            unit = chart.right_unit if each.right else chart.unit
            yield ChartSpec(name=chart.name, title=_TITLES[each.column], unit=unit, lines=[each])


def _drawn(chart: ChartSpec, time: TimeColumns, marks: TimeMarks, *, width: int) -> str:
    plot = lines_over_time(
        [time.columns[each.column] for each in chart.lines],
        at=time.columns["at"],
        window=marks.window,
        up=ValueAxis(logarithmic=chart.logarithmic, label=_LABELS.get(chart.unit, formats.axis_number)),
        width=width,
    )
    return f"{marks.marked(plot, frame=FRAME_WIDTH - 1)}\n{legend([each.label for each in chart.lines])}"


def _latency_charts(reader: RecordingReader, *, width: int) -> list[TextChart]:
    """Return latency against load: of a sweep a chart for each latency, with a curve for each row of its matrix."""
    summary = run_summary(reader)
    sweep = summary.sweep
    if sweep is None or not sweep.cells:
        found = {name: [(x, y) for x, y, _ in points] for name, points in stage_points(summary).items()}
        return _against_load(LOAD_TITLE, found, across="req/s", width=width, joined=False)
    across, charts = load_unit(sweep), []
    for title, rows in sweep_lines(sweep).items():
        found = {sanitize_line(name): list(points) for name, points in rows.items()}
        charts += _against_load(f"{title} against load", found, across=across, width=width)
    return charts


def _against_load(
    title: str, named: Mapping[str, Points], *, across: str, width: int, joined: bool = True
) -> list[TextChart]:
    """Return a chart of latencies (seconds) against load; none with fewer than two loads."""
    ordered = {name: sorted(points) for name, points in named.items() if points}
    if len({load for points in ordered.values() for load, _ in points}) < 2:
        return []
    up = ValueAxis(logarithmic=True, label=formats.axis_seconds)
    text = curves(ordered, across=across, up=up, width=width, joined=joined)
    return [TextChart(name=LATENCY, title=title, text=text, markers=MARKERS)]
