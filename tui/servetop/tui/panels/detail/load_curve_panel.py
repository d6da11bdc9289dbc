"""A chart of throughput or latency over the load, with the baseline's curve and the difference shaded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.braille import ChartLine
from servetop.tui.drawing.charts import GUTTER, Axes, chart
from servetop.tui.drawing.scale import peak_of, round_limit
from servetop.tui.drawing.text_runs import TextRow, overlaid, placard
from servetop.tui.panels.live.latency_rows import LABELS
from servetop.tui.panels.panel import Panel
from servetop.tui.state.baseline import STYLE
from servetop.tui.state.frame import Frame
from servetop.tui.state.load_curves import PERCENTILE, LoadCurve, load_curves

_SAMPLES = 400
"""Points of a drawn line."""
_OWN, _BEFORE = "sky", STYLE
_POINTS = {_OWN: "●", _BEFORE: "○"}


class LoadCurvePanel(Panel):
    """One of the two curves: `throughput`, or the selected latency."""

    def __init__(self, shown: str, *, id: str) -> None:
        super().__init__(id=id)
        self._shown = shown

    def title(self, frame: Frame) -> Sequence[TextRow]:
        latency = f"{LABELS[frame.view.metric]} p{PERCENTILE} "
        title: TextRow = [("Output tok/s " if self._shown == "throughput" else latency, "title"), ("over load", "")]
        if frame.baseline is None:
            return [title]
        names = ((_OWN, frame.baseline.names[0]), (_BEFORE, frame.baseline.name))
        return [title, *([(_POINTS[style], style), (f" {sanitize_line(name)}", "")] for style, name in names)]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        baseline = None if frame.baseline is None else frame.baseline.run
        curves = load_curves(frame, baseline, metric=frame.view.metric)
        return draw_load_curves(*curves, latency=self._shown != "throughput", width=width, height=height)


def draw_load_curves(own: LoadCurve, before: LoadCurve, *, latency: bool, width: int, height: int) -> list[TextRow]:
    """Both curves with a mark at each measured load, whose number is below."""
    loads = np.unique(np.concatenate((own.loads, before.loads)))
    if not own.loads.size:
        return placard("no stage with a constant load has finished", width=width, height=height)
    if width < 3 * GUTTER or height < 4:
        return placard("no room", width=width, height=height)
    ours, theirs = (curve.latencies if latency else curve.output_rates for curve in (own, before))
    axes = Axes(
        window=(0.0, float(loads[-1]) * 1.05),
        limit=round_limit(peak_of(ours, theirs)),
        label=formats.axis_seconds if latency else formats.axis_number,
        across={float(load): f"{load:g}" for load in loads},
    )
    x = np.linspace(*axes.window, _SAMPLES)
    line, base = (_sampled(x, curve.loads, values) for curve, values in ((own, ours), (before, theirs)))
    traces = [
        ChartLine(times=x, values=line, style="faint", down_to=base),
        ChartLine(times=x, values=base, style=_BEFORE, dash="fine"),
        ChartLine(times=x, values=line, style=_OWN),
    ]
    rows = chart(traces, axes, width=width, height=height)
    rows = _with_points(rows, axes, before.loads, theirs, style=_BEFORE, width=width)
    return _with_points(rows, axes, own.loads, ours, style=_OWN, width=width)


def _sampled(x: FloatArray, loads: FloatArray, values: FloatArray) -> FloatArray:
    """Return the line between measured loads, NaN beyond them."""
    if not loads.size:
        return np.full(x.shape, np.nan)
    return np.asarray(np.interp(x, loads, values, left=np.nan, right=np.nan), dtype=np.float64)


def _with_points(
    rows: Sequence[TextRow], axes: Axes, loads: FloatArray, values: FloatArray, *, style: str, width: int
) -> list[TextRow]:
    """Return the rows of `chart` with a mark at each measured value."""
    drawn, plot, canvas = list(rows), len(rows) - 1, width - GUTTER
    for load, value in zip(loads, values, strict=True):
        if np.isnan(value):
            continue
        column = min(int(load / axes.window[1] * canvas), canvas - 1)
        row = plot - 1 - int(np.rint(min(value / axes.limit, 1.0) * (plot * 4 - 1))) // 4
        drawn[row] = overlaid(drawn[row], GUTTER + column, _POINTS[style], style)
    return drawn
