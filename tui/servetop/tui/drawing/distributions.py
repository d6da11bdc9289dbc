"""Distributions by stage on a logarithmic axis: cumulative curves, and histograms below each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from servetop.core.histogram import LogHistogram, bucket_value
from servetop.tui.drawing.braille import DASHES, ChartLine, raster
from servetop.tui.drawing.charts import GUTTER, with_marks
from servetop.tui.drawing.formats import axis_seconds
from servetop.tui.drawing.palette import HUES
from servetop.tui.drawing.ridgeline import INDENT, ridgelines
from servetop.tui.drawing.scale import log_limits
from servetop.tui.drawing.text_runs import Run, TextRow, placard

Scale = Callable[[float], str]
"""Formats a value of the axis in at most 6 characters."""
STAGE_DASHES = tuple(DASHES)
"""The dashes of the curves, in turn."""


def draw_cdf(
    curves: Sequence[LogHistogram], width: int, height: int, *, limit: float | None = None, scale: Scale = axis_seconds
) -> list[TextRow]:
    """Value across (logarithmic), share upwards, in the colours of `StageLegend`; a vertical line marks `limit`."""
    edges = _edges(curves, limit)
    if edges is None or height < 3 or width < 3 * GUTTER:
        return placard("nothing measured yet", width=width, height=height)
    window = (math.log(edges[0]), math.log(edges[1]))
    traces = [_curve(each, window, number) for number, each in enumerate(curves) if each.buckets.size]
    bare = raster(traces, width=width - GUTTER, height=height - 1, window=window, limit=1.0)
    marks = () if limit is None else (math.log(limit),)
    drawn = with_marks(bare, window=window, marks=marks, width=width - GUTTER, style="warn")
    labels = {0: "100%", len(drawn) - 1: "0%"} | ({len(drawn) // 2: "50%"} if len(drawn) >= 5 else {})
    rows: list[TextRow] = [
        [(f"{labels[y]:>{GUTTER - 1}}┤" if y in labels else " " * (GUTTER - 1) + "│", "faint"), *row]
        for y, row in enumerate(drawn)
    ]
    return [*rows, [(" " * GUTTER + _axis(edges, width - GUTTER, scale), "faint")]]


def draw_ridgelines(
    curves: Sequence[LogHistogram], width: int, height: int, *, limit: float | None = None, scale: Scale = axis_seconds
) -> list[TextRow]:
    """One histogram per stage below the other, on the axis of `draw_cdf`."""
    edges = _edges(curves, limit)
    if edges is None or height < 3 or width < 2 * GUTTER:
        return placard("nothing measured yet", width=width, height=height)
    window = (math.log(edges[0]), math.log(edges[1]))
    swatches = [stage_swatch(number) for number in range(len(curves))]
    marks = () if limit is None else (math.log(limit),)
    drawn = ridgelines(curves, swatches, window=window, shape=(height - 1, width), marks=marks)
    blanks: list[TextRow] = [[(" " * width, "")] for _ in range(height - 1 - len(drawn))]
    return [*blanks, *drawn, [(" " * INDENT + _axis(edges, width - INDENT, scale), "faint")]]


def _edges(curves: Sequence[LogHistogram], limit: float | None) -> tuple[float, float] | None:
    """Round limits around all values and the objective; None without values."""
    seen = [each for each in curves if each.buckets.size]
    if not seen:
        return None
    ends = [bucket_value(int(each.buckets[side])) for each in seen for side in (0, -1)]
    ends += [] if limit is None else [limit * 0.9, limit * 1.1]
    return log_limits(min(ends), max(ends))


def _axis(edges: tuple[float, float], room: int, scale: Scale) -> str:
    low, high = edges
    left, middle, right = (scale(value) for value in (low, (low * high) ** 0.5, high))
    start = f"{left:<{room // 2 - 2}}{middle}" if room >= 20 else left
    return start.ljust(room - len(right)) + right


def _curve(histogram: LogHistogram, window: tuple[float, float], number: int) -> ChartLine:
    at = np.maximum(np.log([bucket_value(int(bucket)) for bucket in histogram.buckets]), window[0])
    share = np.cumsum(histogram.counts) / histogram.count
    return ChartLine(
        times=np.concatenate((window[:1], np.maximum(at[:1] - 1e-6, window[0]), at, window[1:])),
        values=np.concatenate(([0.0, 0.0], share, [1.0])),
        style=HUES[number % len(HUES)],
        dash=STAGE_DASHES[number % len(STAGE_DASHES)],
    )


def stage_swatch(number: int) -> Run:
    """The swatch of a drawn stage, by its number."""
    nothing = np.empty(0)
    dash = STAGE_DASHES[number % len(STAGE_DASHES)]
    return ChartLine(times=nothing, values=nothing, style=HUES[number % len(HUES)], dash=dash).swatch
