"""Cumulative distributions of one latency, a curve for each stage."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.core.histogram import LogHistogram, bucket_value
from servetop.tui import formats
from servetop.tui.braille import DASHES, Trace, raster
from servetop.tui.charts import GUTTER
from servetop.tui.heat import log_limits
from servetop.tui.lines import Row, joined, placard
from servetop.tui.palette import HUES
from servetop.tui.panels.latency import axis_seconds
from servetop.tui.panels.panel import Panel
from servetop.tui.printable import printable, shortened
from servetop.tui.run_so_far import Moment

LABELS = {"ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "e2el": "E2E"}
MOST_CURVES = 6
"""The newest stages; more cannot be told apart."""
_DASHES = tuple(DASHES)


class CdfPanel(Panel):
    """Share of requests (for ITL: tokens) at or below a latency, by stage."""

    def __init__(self, metric: str) -> None:
        super().__init__(id=metric)
        self._metric = metric

    def title(self, moment: Moment) -> Sequence[Row]:
        """The metric, and the newest stage's percentiles."""
        newest = moment.per_stage()[-1:]
        parts: list[Row] = [[(LABELS[self._metric], "title")]]
        for q in (50, 90, 99) if newest else ():
            value = newest[0].histograms[self._metric].percentile(q)
            parts.append([(f"p{q} ", ""), (formats.seconds(value), "strong")])
        return parts

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:
        """See `draw_cdf`."""
        curves = [each.histograms[self._metric] for each in moment.per_stage()[-MOST_CURVES:]]
        return draw_cdf(curves, width, height)


class StageLegend(Panel):
    """Which curve is which stage."""

    def title(self, moment: Moment) -> list[Row]:  # noqa: ARG002
        """None: no frame."""
        return []

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:  # noqa: ARG002
        """As many stages as fit, the newest first."""
        figures = moment.per_stage()[-MOST_CURVES:]
        names = [shortened(printable(each.stage.label), 30) for each in figures]
        parts: list[Row] = [
            [(*_swatch(number),), (f" {name}", "muted")] for number, name in reversed(list(enumerate(names)))
        ]
        return [joined(parts, width=width)]


def draw_cdf(curves: Sequence[LogHistogram], width: int, height: int) -> list[Row]:
    """Latency across (logarithmic), share upwards; the curves of `StageLegend`."""
    seen = [each for each in curves if each.buckets.size]
    if not seen or height < 3 or width < 3 * GUTTER:
        return placard("nothing measured yet", width=width, height=height)
    low, high = log_limits(
        bucket_value(min(int(each.buckets[0]) for each in seen)),
        bucket_value(max(int(each.buckets[-1]) for each in seen)),
    )
    window = (math.log(low), math.log(high))
    traces = [_curve(each, window, number) for number, each in enumerate(curves) if each.buckets.size]
    drawn = raster(traces, width=width - GUTTER, height=height - 1, window=window, limit=1.0)
    labels = {0: "100%", len(drawn) - 1: "0%"} | ({len(drawn) // 2: "50%"} if len(drawn) >= 5 else {})
    rows: list[Row] = [
        [(f"{labels[y]:>{GUTTER - 1}}┤" if y in labels else " " * (GUTTER - 1) + "│", "faint"), *row]
        for y, row in enumerate(drawn)
    ]
    left, middle, right = (axis_seconds(value) for value in (low, (low * high) ** 0.5, high))
    room = width - GUTTER
    start = f"{left:<{room // 2 - 2}}{middle}" if room >= 20 else left
    axis = start.ljust(room - len(right)) + right
    return [*rows, [(" " * GUTTER + axis, "faint")]]


def _curve(histogram: LogHistogram, window: tuple[float, float], number: int) -> Trace:
    at = np.log([bucket_value(int(bucket)) for bucket in histogram.buckets])
    share = np.cumsum(histogram.counts) / histogram.count
    return Trace(
        times=np.concatenate((window[:1], at[:1] - 1e-6, at, window[1:])),
        values=np.concatenate(([0.0, 0.0], share, [1.0])),
        style=HUES[number % len(HUES)],
        dash=_DASHES[number % len(_DASHES)],
    )


def _swatch(number: int) -> tuple[str, str]:
    nothing = np.empty(0)
    dash = _DASHES[number % len(_DASHES)]
    return Trace(times=nothing, values=nothing, style=HUES[number % len(HUES)], dash=dash).swatch
