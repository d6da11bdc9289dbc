"""Line plots for reports on the terminal: the only module that imports plotext.

Live charts use `braille` instead: plotext takes 0.13 s to load and 4 ms per chart, too much at four frames a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servetop.core.text import formats
from servetop.tui.drawing.scale import round_limit

MARKERS = ("●", "▲", "■", "◆", "○", "□", "◇", "▼")
"""One per curve: distinguishable without colour."""

Points = Sequence[tuple[float, float]]


def curves(named: Mapping[str, Points], *, across: str, up: str, width: int = 72, height: int = 16) -> str:
    """Draws curves in at most `width` columns and `height` rows of plain text, with a legend below.

    `across` and `up` name the axes, with units; the vertical one starts at 0. Each curve has at least one point; its
    points are in order of x.
    """
    import plotext

    figure: Any = plotext.figure
    figure.clear()
    figure.theme("clear")
    figure.plot_size(width, height)
    figure.label(across, "x").label(up, "y")
    for marker, points in zip(_repeated(len(named)), named.values(), strict=True):
        x, y = [list(values) for values in zip(*points, strict=True)]
        figure.draw(figure.signal(x, y).lines())
        figure.draw(figure.signal(x, y, marker=marker))
    top = round_limit(max(value for points in named.values() for _, value in points))
    ticks = [top * share for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    figure.ruler("y").lim(0, top)
    figure.ruler("y").ticks(ticks, [formats.count(tick) for tick in ticks])
    rates = sorted({x for points in named.values() for x, _ in points})
    figure.ruler("x").ticks(rates, [f"{rate:g}" for rate in rates])
    drawn = plotext.uncolorize(str(figure.build()))
    legend = "   ".join(f"{marker} {name}" for marker, name in zip(_repeated(len(named)), named, strict=True))
    return f"{drawn.rstrip()}\n{legend}"


def _repeated(count: int) -> list[str]:
    return [MARKERS[index % len(MARKERS)] for index in range(count)]
