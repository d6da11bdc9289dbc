"""Report sections of other packages (entry points `servetop.report_sections`): inert texts, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from servetop.core.errors import ServetopError
from servetop.core.system.plug_ins import PlugIn, plug_ins
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.html_text import Markup, data_table, element
from servetop.reports.page.line_chart import SvgLine, line_chart
from servetop.reports.plug_ins.recording_view import RecordingView

GROUP = "servetop.report_sections"
MOST_PARTS, MOST_ROWS, MOST_COLUMNS, MOST_LINES, MOST_POINTS = 50, 200, 30, 12, 1_000_000
"""What one section may have of parts, and a part of rows, columns, lines and points; more is left out, and said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionTable:
    """A table; texts and numbers are shown as text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    """As many values each as there are columns; None is an empty cell."""
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionChart:
    """Lines over a common axis."""

    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    """By the name of each line its x, ascending, and y, of one length; NaN is a gap. NumPy arrays are accepted."""
    x_unit: str = "s"
    y_unit: str = ""
    caption: str = ""


SectionPart: TypeAlias = str | SectionTable | SectionChart


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A section that a plug-in adds to `servetop report` of one run, before the definitions."""

    title: str
    parts: Callable[[RecordingView], Iterable[SectionPart]]
    """Returns paragraphs, tables and charts; nothing leaves the section out of this report."""


@dataclass(slots=True)
class PlugInSections:
    """The sections of all plug-ins for one recording, as markup whose texts are escaped."""

    sections: list[Markup] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    """A line for each plug-in that cannot be loaded or fails; its section says so too."""


def plug_in_sections(reader: RecordingReader) -> PlugInSections:
    """Return the sections of all plug-ins, by their names; one that is broken hides no other."""
    found = PlugInSections()
    for plug_in in plug_ins(GROUP, "report section").values():
        title, parts = plug_in.name, list[Markup]()
        try:
            section = plug_in.load(ReportSection)
            title = str(section.title)
            parts = list(_drawn(plug_in, section, RecordingView(reader)))
        except ServetopError as error:
            found.trouble.append(str(error))
            parts = [element("p", f"Left out: {error}", class_="note")]
        if parts:
            found.sections.append(element("section", element("h2", title), *parts))
    return found


def _drawn(plug_in: PlugIn, section: ReportSection, recording: RecordingView) -> Iterator[Markup]:
    for number, part in enumerate(plug_in.each("parts", lambda: section.parts(recording))):
        if number == MOST_PARTS:
            yield element("p", f"The rest is left out: a section has up to {MOST_PARTS} parts.", class_="note")
            return
        match part:
            case str():
                yield element("p", part)
            case SectionTable():
                yield from plug_in.call("a table", lambda table=part: list(_table(table)))
            case SectionChart():
                yield from plug_in.call("a chart", lambda chart=part: list(_chart(chart)))
            case _:
                raise plug_in.refused(f"parts yielded {type(part).__name__}: texts, tables and charts are possible")


def _table(table: SectionTable) -> Iterator[Markup]:
    columns = [str(each) for each in table.columns][:MOST_COLUMNS]
    rows = [[_cell(each) for each in row][: len(columns)] for row in table.rows[:MOST_ROWS]]
    if not columns or any(len(row) != len(columns) for row in rows):
        raise ValueError("each row needs a value for each column")
    yield data_table(columns, rows, caption=str(table.caption))
    if len(table.rows) > MOST_ROWS:
        yield element("p", f"{len(table.rows) - MOST_ROWS:,} more rows are left out.", class_="note")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.6g}" if math.isfinite(value) else str(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _chart(chart: SectionChart) -> Iterator[Markup]:
    lines = []
    for name, (x, y) in list(chart.lines.items())[:MOST_LINES]:
        if len(x) != len(y) or len(x) > MOST_POINTS:
            raise ValueError(f"line {name}: x and y need one length, of up to {MOST_POINTS:,}")
        lines.append(SvgLine(name=str(name), x=[float(each) for each in x], y=[float(each) for each in y]))
    if lines:
        drawn = line_chart(lines, x_unit=str(chart.x_unit), y_unit=str(chart.y_unit))
        yield element("figure", element("figcaption", chart.caption) if chart.caption else None, drawn)
    if len(chart.lines) > MOST_LINES:
        yield element("p", f"{len(chart.lines) - MOST_LINES} more lines are left out.", class_="note")
