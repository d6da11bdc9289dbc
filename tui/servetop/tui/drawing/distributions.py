"""Distributions by stage on a logarithmic axis: cumulative curves, and histograms below each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from servetop.core.histogram import LogHistogram, bucket_values
from servetop.core.text.formats import axis_seconds
from servetop.tui.drawing.braille import DASHES, ChartLine, raster
from servetop.tui.drawing.charts import GUTTER, with_marks
from servetop.tui.drawing.palette import HUES
from servetop.tui.drawing.ridgeline import Ridge, indent_of, ridgelines
from servetop.tui.drawing.scale import log_ticks
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard

Scale = Callable[[float], str]
"""Formats a value of the axis in at most 6 characters."""
STAGE_DASHES = tuple(DASHES)
"""The dashes of the curves, in turn."""
_BEYOND = 0.005
"""Share of a stage's values that may be beyond either end of the axis, where they are drawn at its edge."""
_TOGETHER = 2e-5
"""Seconds up to which tokens arrived together; on a logarithmic axis they would push all others to its end."""
_MOST_TICKS = 6


def draw_cdf(
    curves: Sequence[LogHistogram], width: int, height: int, *, limit: float | None = None, scale: Scale = axis_seconds
) -> list[TextRow]:
    """Value across (logarithmic), share upwards, in the colours of `StageLegend`; a vertical line marks `limit`."""
    ticks = _ticks(curves, limit)
    if not ticks or height < 3 or width < 3 * GUTTER:
        return placard("nothing measured yet", width=width, height=height)
    window = (math.log(ticks[0]), math.log(ticks[-1]))
    traces = [_curve(each, window, number) for number, each in enumerate(curves) if each.buckets.size]
    bare = raster(traces, width=width - GUTTER, height=height - 1, window=window, limit=1.0)
    marks = () if limit is None else (math.log(limit),)
    drawn = with_marks(bare, window=window, marks=marks, width=width - GUTTER, style="warn")
    labels = {0: "100%", len(drawn) - 1: "0%"} | ({len(drawn) // 2: "50%"} if len(drawn) >= 5 else {})
    rows: list[TextRow] = [
        [(f"{labels[y]:>{GUTTER - 1}}┤" if y in labels else " " * (GUTTER - 1) + "│", "faint"), *row]
        for y, row in enumerate(drawn)
    ]
    return [*rows, [(" " * GUTTER + _axis(ticks, width - GUTTER, scale), "faint")]]


def draw_ridgelines(
    ridges: Sequence[Ridge], width: int, height: int, *, limit: float | None = None, scale: Scale = axis_seconds
) -> list[TextRow]:
    """Return one histogram per stage below the other, the newest last, on the axis of `draw_cdf`."""
    ticks = _ticks([ridge.histogram for ridge in ridges], limit)
    if not ticks or height < 3 or width < 2 * GUTTER:
        return placard("nothing measured yet", width=width, height=height)
    window = (math.log(ticks[0]), math.log(ticks[-1]))
    marks = () if limit is None else (math.log(limit),)
    drawn = ridgelines(ridges, window=window, shape=(height - 1, width), marks=marks)
    indent = indent_of(ridges[-(height - 1) :], height - 1)
    blanks: list[TextRow] = [[(" " * width, "")] for _ in range(height - 1 - len(drawn))]
    return [*blanks, *drawn, [(" " * indent + _axis(ticks, width - indent, scale), "faint")]]


def constant_value(histogram: LogHistogram) -> float | None:
    """Return the only value of a histogram of whole numbers; None if there are several or none."""
    return histogram.mean if histogram.buckets.size == 1 and histogram.mean.is_integer() else None


def draw_constants(ridges: Sequence[Ridge], width: int, height: int, *, scale: Scale) -> list[TextRow] | None:
    """Return the values of histograms that have one value each; None if one of them varies."""
    known = [(ridge, constant_value(ridge.histogram)) for ridge in ridges if ridge.histogram.buckets.size]
    if not known or any(value is None for _, value in known):
        return None
    texts = {scale(value) for _, value in known if value is not None}
    if len(texts) == 1:
        return placard(f"always {texts.pop()}", width=width, height=height)
    rows: list[TextRow] = [
        fitted([(f"{ridge.name}: ", ridge.style), (f"always {scale(value or 0.0)}", "strong")], width)
        for ridge, value in known[-height:]
    ]
    return rows


def _ticks(curves: Sequence[LogHistogram], limit: float | None) -> list[float]:
    """Round ticks around nearly all values and the objective, the first and the last at the ends of the axis."""
    low, high = math.inf, -math.inf
    for each in curves:
        values = bucket_values(each.buckets)
        counts = np.where(values > _TOGETHER, each.counts, 0)
        if counts.sum() > 0:
            share = np.cumsum(counts) / counts.sum()
            first, last = (min(int(at), values.size - 1) for at in np.searchsorted(share, [_BEYOND, 1 - _BEYOND]))
            low, high = min(low, float(values[first])), max(high, float(values[last]))
        elif values.size:
            low, high = min(low, float(values[0])), max(high, float(values[-1]))
    if low > high:
        return []
    if limit is not None:
        low, high = min(low, limit * 0.9), max(high, limit * 1.1)
    return log_ticks(low, high, most=_MOST_TICKS)


def _axis(ticks: Sequence[float], room: int, scale: Scale) -> str:
    """Return the ticks that fit, the ends first."""
    low, high = math.log(ticks[0]), math.log(ticks[-1])
    row = [" "] * room
    for value in (ticks[0], ticks[-1], *ticks[1:-1]):
        text = scale(value)
        column = round((math.log(value) - low) / (high - low) * room)
        at = min(max(column - len(text) // 2, 0), room - len(text))
        if at >= 0 and all(letter == " " for letter in row[max(at - 1, 0) : at + len(text) + 1]):
            row[at : at + len(text)] = text
    return "".join(row)


def _curve(histogram: LogHistogram, window: tuple[float, float], number: int) -> ChartLine:
    at = np.clip(np.log(bucket_values(histogram.buckets)), *window)
    share = np.cumsum(histogram.counts) / histogram.count
    return ChartLine(
        times=np.concatenate((window[:1], np.maximum(at[:1] - 1e-6, window[0]), at, window[1:])),
        values=np.concatenate(([0.0, 0.0], share, [1.0])),
        style=HUES[number % len(HUES)],
        dash=STAGE_DASHES[number % len(STAGE_DASHES)],
    )


def stage_swatch(number: int) -> Run:
    """Return the swatch of a drawn stage, by its number."""
    nothing = np.empty(0)
    dash = STAGE_DASHES[number % len(STAGE_DASHES)]
    return ChartLine(times=nothing, values=nothing, style=HUES[number % len(HUES)], dash=dash).swatch
