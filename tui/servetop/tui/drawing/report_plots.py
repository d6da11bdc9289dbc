"""Line plots for reports on the terminal: the only module that imports plotext.

Live charts use `braille` instead: plotext takes 0.13 s to load and 4 ms per chart, too much at four frames a second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.text import formats
from servetop.tui.drawing.scale import log_limits, log_ticks, round_limit
from servetop.tui.drawing.ticks import time_ticks

MARKERS = ("●", "▲", "■", "◆", "○", "□", "◇", "▼")
"""One per curve: distinguishable without colour."""
LINE_MARKERS = ("•", "×", "○", "+")
"""One per line over time, which has one in each column."""
LABEL_WIDTH = 5
"""Cells of the labels of an axis, at least; equal in all plots, so that their time axes align."""
FRAME_WIDTH = LABEL_WIDTH + 2
"""Cells beside the columns of `lines_over_time`: the labels, and the axes on both sides."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAxis:
    """The vertical axis of a plot; it starts at 0, unless it is logarithmic."""

    name: str = ""
    """What is written below it, with the unit."""
    logarithmic: bool = False
    label: Callable[[float], str] = formats.count
    """Formats a value."""


def curves(
    named: Mapping[str, Points], *, across: str, up: ValueAxis, width: int = 72, height: int = 16, joined: bool = True
) -> str:
    """Draws curves in at most `width` columns and `height` rows of plain text, with a legend below.

    `across` is the name of the horizontal axis, with its unit. Each curve has at least one point; its points are in
    order of x, with a line between them unless they are not `joined`.
    """
    figure = _figure(width, height)
    figure.label(across, "x").label(up.name, "y")
    for marker, points in zip(_repeated(len(named)), named.values(), strict=True):
        x, y = [np.array(values) for values in zip(*points, strict=True)]
        heights = _heights(y, up).tolist()
        if joined:
            figure.draw(figure.signal(x.tolist(), heights).lines())
        figure.draw(figure.signal(x.tolist(), heights, marker=marker))
    _scale(figure, np.array([value for points in named.values() for _, value in points]), up, rows=height)
    rates = sorted({x for points in named.values() for x, _ in points})
    figure.ruler("x").ticks(rates, [formats.rate_number(rate) for rate in rates])
    return f"{_built(figure)}\n{legend(list(named), _repeated(len(named)))}"


def lines_over_time(
    lines: Sequence[FloatArray],
    *,
    at: FloatArray,
    window: tuple[float, float],
    up: ValueAxis,
    width: int,
    height: int = 12,
) -> str:
    """Draws lines over a window of time (seconds), in `width` columns and `height` rows of plain text.

    Values are at the times `at`, with NaN where they are unknown. The lines are in the order of `LINE_MARKERS`, of
    which the last is on top. A label of the axis `up` has at most 5 characters.
    """
    figure = _figure(width, height)
    for marker, values in zip(LINE_MARKERS, lines, strict=False):
        heights = _heights(values, up)
        for known, positions in itertools.groupby(range(values.size), key=np.isfinite(heights).__getitem__):
            if known:
                part = list(positions)
                figure.draw(figure.signal(at[part].tolist(), heights[part].tolist(), marker=marker).lines())
    _scale(figure, np.concatenate(lines), up, rows=height)
    columns = width - FRAME_WIDTH
    times = time_ticks(window, width=columns, from_now=False)
    figure.ruler("x").lim(*window)
    figure.ruler("x").ticks(
        [window[0] + place / columns * (window[1] - window[0]) for place in times], list(times.values())
    )
    return _built(figure)


def legend(names: Sequence[str], markers: Sequence[str] = LINE_MARKERS) -> str:
    """Return names with their markers, in a line."""
    return "   ".join(f"{marker} {name}" for marker, name in zip(markers, names, strict=False))


def _figure(width: int, height: int) -> Any:
    import plotext

    plotext.terminal.limit(width=False, height=False)
    figure: Any = plotext.figure
    figure.clear()
    figure.theme("clear")
    figure.plot_size(width, height)
    return figure


def _built(figure: Any) -> str:
    import plotext

    return str(plotext.uncolorize(str(figure.build()))).rstrip()


def _heights(values: FloatArray, up: ValueAxis) -> FloatArray:
    """Return values as plotted; on a logarithmic axis, those too small for it are at its lower end."""
    return np.log10(np.maximum(values, log_limits(0, 0)[0])) if up.logarithmic else values


def _scale(figure: Any, values: FloatArray, up: ValueAxis, *, rows: int) -> None:
    """Set the limits and the labels of the vertical axis; the labels are of one width at least."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    if up.logarithmic:
        ticks = log_ticks(low, high, most=max(2, (rows - 2) // 2))
        places = [math.log10(each) for each in ticks]
    else:
        ticks = places = [round_limit(high) * share for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    figure.ruler("y").lim(places[0], places[-1])
    figure.ruler("y").ticks(places, [f"{up.label(tick):>{LABEL_WIDTH}}" for tick in ticks])


def _repeated(count: int) -> list[str]:
    return [MARKERS[index % len(MARKERS)] for index in range(count)]
