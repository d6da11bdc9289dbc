"""Lines and areas in braille cells of 2 × 4 dots, rastered with NumPy.

No plotting library, because series need dashes, gaps and areas as well as colours, and a screen full of charts must be
redrawn four times a second in a few milliseconds (docs/performance.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.tui.drawing.text_runs import Run

if TYPE_CHECKING:
    import numpy.typing as npt

DASHES = {"solid": (1, 1), "dashed": (8, 12), "dotted": (1, 4)}
"""Dots drawn, and the period; whole cells, so that the colours of overlapping lines alternate."""
_PATTERNS = {**DASHES, "fine": (1, 2)}
"""Those of series, and that of the run that they are compared with."""
SWATCHES = {"solid": "⠤⠤⠤", "dashed": "⠤⠤⠄", "dotted": "⠄⠄⠄", "fine": "⠂⠂⠂"}
"""The legend's swatch of each dash."""
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint32)
"""Value of each dot in a cell's code point (Unicode 15, chapter 21.1)."""
_BLANK = 0x2800


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChartLine:
    """One series: values at ascending times; NaN is a gap."""

    times: FloatArray
    values: FloatArray
    style: str
    dash: str = "solid"
    """One of `DASHES`, or `fine`; an area is hatched unless it is solid."""
    area: bool = False
    """Fill down to zero."""
    down_to: FloatArray | None = None
    """Shade the area between the values and these, in cells that no other series uses."""
    cuts: bool = False
    """Clear the dots of earlier series around it, as a line must that crosses an area."""

    @property
    def swatch(self) -> Run:
        """Three cells that show how this series is drawn, for legends."""
        if self.area:
            return ("⣿⣿⣿" if self.dash == "solid" else "⡪⡪⡪", self.style)
        return (SWATCHES[self.dash], self.style)


def raster(
    traces: Sequence[ChartLine], *, width: int, height: int, window: tuple[float, float], limit: float
) -> list[list[Run]]:
    """`height` rows of `width` cells: `window` in seconds from left to right, 0 to `limit` from bottom to top.

    Later traces cover earlier ones: a cell has the style of the last one that drew in it. Shades come after all others.
    """
    dots = np.zeros((height, 4, width, 2), dtype=np.bool_)
    owners = np.full((height, width), -1, dtype=np.int64)
    for number, trace in sorted(enumerate(traces), key=lambda pair: pair[1].down_to is not None):
        scale = (height * 4 - 1) / limit
        levels = _levels(trace, trace.values, columns=width * 2, window=window) * scale
        if trace.down_to is not None:
            base = _levels(trace, trace.down_to, columns=width * 2, window=window) * scale
            cells = _shade(levels, base, height * 4).reshape(dots.shape) & (owners < 0)[:, None, :, None]
        else:
            cells = (_area if trace.area else _line)(levels, height * 4, trace.dash).reshape(dots.shape)
        used = np.asarray(cells.any(axis=(1, 3)))
        if trace.cuts:
            dots &= ~_around(_line(levels, height * 4, "solid")).reshape(dots.shape)
        dots |= cells
        owners[used] = number
    styles = [*(trace.style for trace in traces), ""]
    return [_runs(text, owners[y], styles) for y, text in enumerate(cells_of(dots.reshape(height * 4, width * 2)))]


def cells_of(dots: BoolArray) -> list[str]:
    """The text of each row of cells for an array of dots, shape (4 × rows, 2 × columns); an empty cell is a blank."""
    rows, columns = dots.shape[0] // 4, dots.shape[1] // 2
    codes = (dots.reshape(rows, 4, columns, 2) * _BITS[None, :, None, :]).sum(axis=(1, 3)) + _BLANK
    return [row.astype("<u4").tobytes().decode("utf-32-le").replace(chr(_BLANK), " ") for row in codes]


def parted(line: ChartLine, high: BoolArray, *, style: str) -> tuple[ChartLine, ChartLine]:
    """Return the line where it is not `high`, and where it is, in another style; both have gaps elsewhere."""
    low_values, high_values = np.where(high, np.nan, line.values), np.where(high, line.values, np.nan)
    return replace(line, values=low_values), replace(line, values=high_values, style=style)


def _levels(trace: ChartLine, series: FloatArray, *, columns: int, window: tuple[float, float]) -> FloatArray:
    """A series on the trace's times in each dot column, interpolated linearly between samples; NaN outside them."""
    blank = np.full(columns, np.nan)
    if not trace.times.size:
        return blank
    start, end = window
    at = start + (np.arange(columns) + 1) / columns * (end - start)
    step = float(np.median(np.diff(trace.times))) if trace.times.size > 1 else (end - start) / columns
    right = np.clip(np.searchsorted(trace.times, at - 1e-9), 0, trace.times.size - 1)
    left = np.maximum(right - 1, 0)
    gap = trace.times[right] - trace.times[left]
    share = np.clip(np.divide(at - trace.times[left], gap, out=np.ones(columns), where=gap > 0), 0, 1)
    values = series[left] + (series[right] - series[left]) * share
    nearest = np.where(share < 0.5, series[left], series[right])
    inside = (at > trace.times[0] - step) & (at < trace.times[-1] + step / 2)
    return np.where(inside, np.where(np.isnan(values), nearest, values), blank)


def _line(levels: FloatArray, dots: int, dash: str) -> BoolArray:
    """Each column extends halfway to its neighbours, so that steep lines stay connected."""
    before = np.concatenate((levels[:1], (levels[1:] + levels[:-1]) / 2))
    after = np.concatenate(((levels[1:] + levels[:-1]) / 2, levels[-1:]))
    reach = np.stack((levels, np.where(np.isnan(before), levels, before), np.where(np.isnan(after), levels, after)))
    known = ~np.isnan(levels)
    low, high = (np.rint(np.where(known, edge, -9)) for edge in (reach.min(axis=0), reach.max(axis=0)))
    rows = np.arange(dots)[::-1, None]
    drawn, period = _PATTERNS[dash]
    visible = known & (np.arange(levels.size) % period < drawn)
    result: BoolArray = (rows >= np.minimum(low, dots - 1)) & (rows <= high) & visible
    return result


def _around(line: BoolArray) -> BoolArray:
    """Return the dots of a line and those above and below it."""
    wide = line.copy()
    wide[1:] |= line[:-1]
    wide[:-1] |= line[1:]
    return wide


def _area(levels: FloatArray, dots: int, dash: str) -> BoolArray:
    known = ~np.isnan(levels) & (levels > 0)
    rows = np.arange(dots)[::-1, None]
    filled = (rows <= np.rint(np.where(known, levels, -1))) & known
    if dash == "solid":
        return filled
    hatched: BoolArray = filled & ((rows + np.arange(levels.size)) % 2 == 0)
    return hatched


def _shade(levels: FloatArray, base: FloatArray, dots: int) -> BoolArray:
    """Return a sparse pattern between two lines, without the dots of either."""
    unknown = np.isnan(levels + base)
    low, high = (np.rint(np.where(unknown, -1, edge)) for edge in (np.fmin(levels, base), np.fmax(levels, base)))
    rows, columns = np.arange(dots)[::-1, None], np.arange(levels.size)
    sparse: BoolArray = (rows > low) & (rows < high) & (rows % 2 == 0) & ((rows // 2 + columns) % 2 == 0)
    return sparse


def _runs(text: str, owners: npt.NDArray[np.int64], styles: Sequence[str]) -> list[Run]:
    latest = np.maximum.accumulate(np.where(owners >= 0, np.arange(owners.size), -1))
    owners = np.where(latest >= 0, owners[latest], owners)  # a blank has no visible style: fewer runs
    edges = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), owners.size]
    return [(text[low:high], styles[owners[low]]) for low, high in itertools.pairwise(edges)]
