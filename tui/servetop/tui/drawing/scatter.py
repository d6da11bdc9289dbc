"""Throughput against latency: one point per cell of a sweep, with the knee and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.knee import knee
from servetop.tui.drawing import formats
from servetop.tui.drawing.charts import GUTTER
from servetop.tui.drawing.formats import axis_seconds
from servetop.tui.drawing.palette import HUES
from servetop.tui.drawing.scale import log_limits, round_limit
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, merged, placard

LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""One per batch size, in ascending order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell of a sweep."""

    batch: int | None
    rate: float
    throughput: float
    """Output tokens/s."""
    latency: float
    """Seconds, TTFT at p90."""


def pareto(points: Sequence[Point]) -> set[int]:
    """Positions of the points that no other one beats in throughput or latency without losing in the other."""
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


def knees(points: Sequence[Point]) -> set[int]:
    """Position of each batch size's knee of latency over request rate (analysis.knee)."""
    found = set()
    for batch in {point.batch for point in points}:
        line = sorted(
            (number for number, each in enumerate(points) if each.batch == batch), key=lambda n: points[n].rate
        )
        at = knee([points[number].rate for number in line], [points[number].latency for number in line])
        if at is not None:
            found.add(line[at])
    return found


def draw_scatter(points: Sequence[Point], width: int, height: int) -> list[TextRow]:
    """Throughput across, latency up (logarithmic); `◇` is a knee, a capital letter is on the Pareto front."""
    known = [point for point in points if not math.isnan(point.latency) and point.throughput > 0]
    if not known or height < 4 or width < 3 * GUTTER:
        return placard("no stage has ended yet", width=width, height=height)
    low, high = log_limits(min(each.latency for each in known), max(each.latency for each in known))
    most = round_limit(max(each.throughput for each in known))
    rows, columns = height - 2, width - GUTTER
    cells: list[list[Run]] = [[(" ", "")] * columns for _ in range(rows)]
    batches = sorted({point.batch or 0 for point in known})
    front, turning = pareto(known), knees(known)
    for number, point in sorted(enumerate(known), key=lambda each: (each[0] in front, each[0] in turning)):
        x = min(int(point.throughput / most * columns), columns - 1)
        y = min(int(math.log(high / point.latency) / math.log(high / low) * rows), rows - 1)
        order = batches.index(point.batch or 0)
        letter = LETTERS[order % len(LETTERS)]
        style = HUES[order % len(HUES)]
        cells[y][x] = (letter.upper() if number in front else letter, style)
        if number in turning and x + 1 < columns:
            cells[y][x + 1] = ("◇", "key")
    labels = {0: axis_seconds(high), rows - 1: axis_seconds(low)}
    plot: list[TextRow] = [
        [(f"{labels[y]:>{GUTTER - 1}}┤" if y in labels else " " * (GUTTER - 1) + "│", "faint"), *merged(row)]
        for y, row in enumerate(cells)
    ]
    right = f"{formats.count(most)} tok/s"
    axis: TextRow = [(" " * GUTTER + "0".ljust(columns - len(right)) + right, "faint")]
    return [*plot, axis, _legend(batches, width)]


def _legend(batches: Sequence[int], width: int) -> TextRow:
    named: list[Run] = []
    for order, batch in enumerate(batches):
        named += [
            (LETTERS[order % len(LETTERS)], HUES[order % len(HUES)]),
            (f" {formats.exact(batch or None)}  ", "muted"),
        ]
    return fitted([("batch ", "muted"), *named, ("CAPITAL Pareto front  ◇ knee", "muted")], width)
