"""Throughput against latency: a line per batch size through its cells, with the knee and the Pareto front."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from servetop.core.text import formats
from servetop.core.text.formats import axis_seconds
from servetop.tui.drawing.braille import cells_of
from servetop.tui.drawing.charts import GUTTER
from servetop.tui.drawing.knee import knee
from servetop.tui.drawing.palette import HUES
from servetop.tui.drawing.scale import log_ticks, round_limit
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, merged, placard

GLYPHS = (("●", "○"), ("■", "□"), ("▲", "△"), ("◆", "◇"), ("▼", "▽"), ("★", "☆"))
"""By batch size in ascending order: a cell on the Pareto front, and another one."""
_BASELINE, _BEFORE_NAME = "baseline", " baseline  "
_X_TICKS = 4
"""Intervals of the throughput axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell of a sweep."""

    batch: int | None
    order: float
    """Position in the line of its batch size: the request rate, or the concurrency in closed loops."""
    label: str
    throughput: float
    """Output tokens/s."""
    latency: float
    """Seconds."""
    settings: str = ""
    """What the cell sets besides batch size and load; cells of other settings are on other lines."""

    @property
    def line(self) -> str:
        """Name of its line."""
        return " · ".join(filter(None, (self.settings, formats.exact(self.batch))))


def pareto(points: Sequence[Point]) -> set[int]:
    """Return positions of the points that no other one beats in throughput or latency without losing in the other."""
    return {
        number
        for number, one in enumerate(points)
        if not any(
            other.throughput >= one.throughput
            and other.latency <= one.latency
            and (other.throughput, other.latency) != (one.throughput, one.latency)
            for other in points
        )
    }


def lines(points: Sequence[Point]) -> dict[str, list[int]]:
    """Return the positions of the points of each line, by load; lines by settings, as they come, and batch size."""
    settings = list(dict.fromkeys(point.settings for point in points))
    rows = sorted(points, key=lambda point: (settings.index(point.settings), point.batch or 0))
    every = sorted(range(len(points)), key=lambda number: points[number].order)
    names = dict.fromkeys(point.line for point in rows)
    return {name: [number for number in every if points[number].line == name] for name in names}


def knees(points: Sequence[Point]) -> set[int]:
    """Position of each batch size's knee of latency over load (drawing.knee)."""
    found = set()
    for line in lines(points).values():
        at = knee([points[number].order for number in line], [points[number].latency for number in line])
        if at is not None:
            found.add(line[at])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Canvas:
    """An area of `rows` × `columns` cells: throughput from 0 to `most` across, latency from `low` to `high` up."""

    rows: int
    columns: int
    most: float
    low: float
    high: float
    used: set[tuple[int, int]] = field(default_factory=set)
    """Cells (row, column) of points and labels."""

    def dot(self, point: Point) -> tuple[float, float]:
        """Row and column of the point in dots of 4 × 2 per cell."""
        up = math.log(point.latency / self.low) / math.log(self.high / self.low)
        return (1 - up) * (self.rows * 4 - 1), min(point.throughput / self.most, 1.0) * (self.columns * 2 - 1)

    def cell(self, point: Point) -> tuple[int, int]:
        """Row and column of the point in cells."""
        y, x = self.dot(point)
        return int(y + 0.5) // 4, int(x + 0.5) // 2

    def place(self, text: str, at: tuple[int, int]) -> tuple[tuple[int, int], str] | None:
        """Reserve room for a label near the cell `at`, free of points and labels, with blanks around it if they fit."""
        y, x = at
        for label in (f" {text} ", text):
            size = len(label)
            for row, column in ((y, x + 1), (y, x - size), (y - 1, x), (y - 1, x - size), (y + 1, x)):
                wanted = {(row, column + each) for each in range(size)}
                inside = 0 <= row < self.rows and column >= 0 and column + size <= self.columns
                if inside and not wanted & self.used:
                    self.used.update(wanted)
                    return (row, column), label
        return None


def draw_scatter(
    points: Sequence[Point], width: int, height: int, *, latency: str, before: Sequence[Point] = ()
) -> list[TextRow]:
    """Throughput across, latency up (logarithmic, named `latency`); each point has its label beside it.

    The points of a baseline, `before`, have a line of their own style behind the others, without labels.
    """
    known, old = ([point for point in each if point.latency > 0 and point.throughput > 0] for each in (points, before))
    if not known or height < 6 or width < 3 * GUTTER:
        return placard("no cell has finished yet" if height >= 6 else "no room", width=width, height=height)
    latencies = [each.latency for each in (*known, *old)]
    ticks = log_ticks(min(latencies), max(latencies), most=5)
    most = round_limit(max(each.throughput for each in (*known, *old)))
    canvas = _Canvas(rows=height - 3, columns=width - GUTTER, most=most, low=ticks[0], high=ticks[-1])
    cells = _lines(canvas, known, old)
    for y, x in map(canvas.cell, old):
        cells[y][x] = ("○", _BASELINE)
    for (y, x), run in _texts(canvas, known):
        cells[y][x : x + len(run[0])] = [(letter, run[1]) for letter in run[0]]
    labels = {_tick_row(canvas, value): axis_seconds(value) for value in ticks}
    plot: list[TextRow] = [
        [(f"{labels[y]:>{GUTTER - 1}}┤" if y in labels else " " * (GUTTER - 1) + "│", "faint"), *merged(row)]
        for y, row in enumerate(cells)
    ]
    head: TextRow = [(latency, "muted"), (" (log)", "faint")]
    legend = _legend(known, width - len(_BEFORE_NAME) - 1 if old else width)
    named: TextRow = [("○", _BASELINE), (_BEFORE_NAME, "muted")] if old else []
    return [fitted(head, width), *plot, _throughput_axis(canvas), [*named, *legend]]


def _tick_row(canvas: _Canvas, value: float) -> int:
    return canvas.cell(Point(batch=None, order=0, label="", throughput=0, latency=value))[0]


def _lines(canvas: _Canvas, points: Sequence[Point], before: Sequence[Point]) -> list[list[Run]]:
    """The cells of the canvas with the line of each batch size in dots, those of the baseline with every second one."""
    dots = np.zeros((canvas.rows * 4, canvas.columns * 2), dtype=np.bool_)
    owners = [[""] * canvas.columns for _ in range(canvas.rows)]
    drawn = [(before, line, _BASELINE, 2) for line in lines(before).values()]
    drawn += [(points, line, HUES[number % len(HUES)], 1) for number, line in enumerate(lines(points).values())]
    for of, line, style, period in drawn:
        for one, other in itertools.pairwise(canvas.dot(of[each]) for each in line):
            steps = int(max(abs(other[0] - one[0]), abs(other[1] - one[1]), 1)) + 1
            ys, xs = (np.rint(np.linspace(one[side], other[side], steps)).astype(int)[::period] for side in (0, 1))
            dots[ys, xs] = True
            for y, x in zip(ys // 4, xs // 2, strict=True):
                owners[y][x] = style
    return [list(zip(row, styles, strict=True)) for row, styles in zip(cells_of(dots), owners, strict=True)]


def _texts(canvas: _Canvas, points: Sequence[Point]) -> Iterator[tuple[tuple[int, int], Run]]:
    """Glyphs and labels with the cell of their first letter."""
    front, turning, ordered = pareto(points), knees(points), lines(points)
    canvas.used.update(canvas.cell(point) for point in points)
    for order, line in enumerate(ordered.values()):
        for number in line:
            at = canvas.cell(points[number])
            yield at, (GLYPHS[order % len(GLYPHS)][number not in front], HUES[order % len(HUES)])
            text = points[number].label + (" knee" if number in turning else "")
            placed = canvas.place(text, at)
            if placed is not None:
                yield placed[0], (placed[1], "key" if number in turning else "muted")


def _throughput_axis(canvas: _Canvas) -> TextRow:
    texts = [formats.count(canvas.most * each / _X_TICKS) for each in range(_X_TICKS + 1)]
    row = [" "] * canvas.columns
    name = " tok/s"
    for each, text in reversed(list(enumerate(texts))):
        text += name if each == _X_TICKS else ""
        at = min(max(round(canvas.columns * each / _X_TICKS) - len(text) // 2, 0), canvas.columns - len(text))
        if all(letter == " " for letter in row[max(at - 1, 0) : at + len(text)]):
            row[at : at + len(text)] = text
    return [(" " * GUTTER + "".join(row), "faint")]


def _legend(points: Sequence[Point], width: int) -> TextRow:
    named: list[Run] = []
    for order, name in enumerate(lines(points)):
        named += [
            (GLYPHS[order % len(GLYPHS)][0], HUES[order % len(HUES)]),
            (f" {name}  ", "muted"),
        ]
    note = "hollow: another cell has more tok/s at less latency" if len(pareto(points)) < len(points) else ""
    return fitted([("batch ", "muted"), *named, (note, "muted")], width)
