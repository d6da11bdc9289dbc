"""The charts of a page: their titles, units and lines, in order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.reports.page.line_chart import DASHES
from servetop.reports.page.time_columns import TimeColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedLine:
    """One line of a chart."""

    label: str
    column: str
    colour: int = 0
    """Number of its colour in the page's palette."""
    dashed: bool = False
    """Whether it is the quieter kind of line; all lines of a chart differ by their dashes, see `dash_numbers`."""
    band: bool = False
    """Whether the range between its lowest and highest value in each bin is drawn behind it."""
    right: bool = False
    """Whether the axis on the right is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSpec:
    """One chart over time; units are `rate`, `count`, `seconds`, `share`, `watts`, `bytes` or `per_second`."""

    name: str
    title: str
    unit: str
    lines: Sequence[PlottedLine]
    logarithmic: bool = False
    right_unit: str | None = None

    def as_data(self) -> dict[str, object]:
        """Return it for the page's script."""
        lines = [
            {"label": each.label, "column": each.column, "colour": each.colour, "dash": DASHES[dash],
             "band": each.band, "right": each.right}
            for each, dash in zip(self.lines, dash_numbers(self.lines), strict=True)
        ]  # fmt: skip
        return {
            "name": self.name, "title": self.title, "unit": self.unit, "lines": lines,
            "logarithmic": self.logarithmic, "rightUnit": self.right_unit,
        }  # fmt: skip


def dash_numbers(lines: Sequence[PlottedLine]) -> Iterator[int]:
    """Yield the number in DASHES of each line, so that up to five lines differ without their colours.

    Dashed lines are dashed, then dash and dot; others are solid, then dotted, then dash and dot.
    """
    through, dashed = itertools.cycle((0, 2, 3)), itertools.cycle((1, 3))
    yield from (next(dashed if each.dashed else through) for each in lines)


_IF_ANY = ("failed", "queued", "output_tokens")
"""Columns that are left out if they are always 0."""


def time_charts(time: TimeColumns, charts: Sequence[ChartSpec] | None = None) -> list[ChartSpec]:
    """Return the charts over time, by default those of a run, of which the recording has at least one line."""
    unused = {each for each in _IF_ANY if each in time.columns and not np.nanmax(time.columns[each], initial=0)}
    known, shown = time.known - unused, []
    for chart in CHARTS if charts is None else charts:
        lines = [each for each in chart.lines if each.column in known]
        if any(each.column != "target" for each in lines):
            right = chart.right_unit if any(each.right for each in lines) else None
            shown.append(
                ChartSpec(
                    name=chart.name, title=chart.title, unit=chart.unit, lines=lines,
                    logarithmic=chart.logarithmic, right_unit=right,
                )
            )  # fmt: skip
    return shown


def _latency_chart(name: str, title: str) -> ChartSpec:
    return ChartSpec(
        name=name,
        title=title,
        unit="seconds",
        logarithmic=True,
        lines=(
            PlottedLine(label="p50", column=f"{name}_p50", dashed=True),
            PlottedLine(label="p99", column=f"{name}_p99", colour=1),
        ),
    )


CHARTS = (
    ChartSpec(
        name="load",
        title="Load: requests per second",
        unit="rate",
        lines=(
            PlottedLine(label="target", column="target", colour=2, dashed=True),
            PlottedLine(label="sent", column="sent", colour=0),
            PlottedLine(label="completed", column="done", colour=1),
            PlottedLine(label="failed", column="failed", colour=3),
        ),
    ),
    ChartSpec(
        name="tokens",
        title="Throughput: output tokens per second",
        unit="rate",
        lines=(PlottedLine(label="output tok/s", column="output_tokens"),),
    ),
    _latency_chart("ttft", "TTFT: time to first token"),
    _latency_chart("tpot", "TPOT: time per output token"),
    ChartSpec(
        name="queue",
        title="Requests running, waiting, in flight",
        unit="count",
        lines=(
            PlottedLine(label="in flight", column="in_flight", colour=2, dashed=True),
            PlottedLine(label="running", column="running", band=True),
            PlottedLine(label="waiting", column="waiting", colour=1, band=True),
            PlottedLine(label="queued at the client", column="queued", colour=3, dashed=True),
        ),
    ),
    ChartSpec(
        name="kv",
        title="KV cache used, and preemptions",
        unit="share",
        right_unit="per_second",
        lines=(
            PlottedLine(label="KV used", column="kv_usage", band=True),
            PlottedLine(label="preemptions/s", column="preemptions", colour=1, right=True),
        ),
    ),
    _latency_chart("itl", "ITL: inter-token latency"),
    _latency_chart("e2el", "E2EL: end-to-end latency"),
    ChartSpec(
        name="gpu",
        title="GPU utilisation and power",
        unit="share",
        right_unit="watts",
        lines=(
            PlottedLine(label="utilisation", column="gpu_utilisation"),
            PlottedLine(label="power", column="gpu_power", colour=1, dashed=True, right=True),
        ),
    ),
)
