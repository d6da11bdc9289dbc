"""The sweep: a matrix of batch size × load, the stages outside it, and the throughput-latency curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.sweep.cell_checks import CELL_MARKS
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.scatter import Point, draw_scatter
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard, shortened
from servetop.tui.panels.detail.cdf import LABELS, whole_ticks
from servetop.tui.panels.detail.sweep_legend import MATRIX_SHADES, SKIPPED, legend
from servetop.tui.panels.panel import Panel
from servetop.tui.state.checked_cells import checked_cells
from servetop.tui.state.frame import Frame
from servetop.tui.state.rest_of_sweep import rest_of_sweep
from servetop.tui.state.sweep_cells import (
    PERCENTILE,
    Cell,
    MatrixPlace,
    OtherStage,
    best_key,
    dips,
    exact_cells,
    measured,
)
from servetop.tui.state.sweep_predictions import LEAST_COMPARED, deviations, mean_of_published, predicted
from servetop.tui.state.sweep_table import MatrixRow, SweepTable

_WHY_EMPTY = ("No stage with a constant load has run yet.", "One constant load only: nothing to compare yet.")
_WHAT_FOR = (
    "A sweep measures every batch size at every request rate;",
    "this chart then shows how much latency more throughput costs.",
)
_HOW = ("servetop sweep --example > grid.toml", "servetop sweep grid.toml")
_HEAD = 9
"""Cells of the batch sizes at the left."""
_NUMBER = 6
_FAILED = "failed"
"""Stands for the number of a cell that could not be measured."""
_MARKS = 4
"""Cells of the marks behind a number, at least; the last one stays blank."""
_LABEL = 22
"""Least width of the load of a stage outside the matrix."""
_LONGEST_LABEL = 36
"""Its largest."""


class SweepPanel(Panel):
    """Output tokens/s of every planned, running and measured cell."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        parts: list[TextRow] = [[("Sweep ", "title"), ("output tok/s by batch size ↓ and requests/s →", "")]]
        if (rest := rest_of_sweep(frame)) is not None:
            parts.append([(rest.text, "strong")])
        if (checks := checked_cells(frame)) is not None and checks.cells:
            parts.append([(checks.headline, "warn" if checks.missed else "strong")])
        cells, planned = exact_cells(measured(frame), frame.sweep), predicted(frame)
        off = deviations(cells, planned)
        if off:
            mean, most = (formats.percent(value) for value in (float(np.mean(off)), max(off)))
            parts.append([("prediction error ", ""), (mean, "strong"), (f" mean, {most} max", "muted")])
        elif any(cells[key].seconds < LEAST_COMPARED for key in cells.keys() & planned.keys()):
            parts.append([(f"prediction error when the sweep ends: cells under {LEAST_COMPARED:g} s", "muted")])
        if (share := mean_of_published(frame, cells)) is not None:
            parts.append([("measured ", ""), (formats.percent(share), "strong"), (" of published", "muted")])
        return parts

    def subtitle(self, frame: Frame) -> TextRow:
        return whole_ticks(frame, self.size.width) if frame.sweep is None else []

    def watch_frame(self, frame: Frame | None) -> None:
        """Limit the height to its rows, which leaves the rest to the curve below."""
        if frame is not None:
            table = SweepTable.of(frame)
            more = len(legend(table, table.rows_per_batch, self.size.width)) - 1 if self.size.width else 0
            self.styles.max_height = max(table.height + more, 3) + 2
        super().watch_frame(frame)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        table = SweepTable.of(frame)
        if not table.rows and not table.others:
            return placard("no stages planned or measured", width=width, height=height)
        return draw_sweep(table, width, height)


def draw_sweep(table: SweepTable, width: int, height: int) -> list[TextRow]:
    """The matrix as a heat map with the best finished cell, dips and preempting cells marked, its legend, the others.

    Rows that are missing are taken first from the predictions, then from the latencies.
    """
    matrix: list[TextRow] = []
    if table.rows:
        room = height - (1 + len(table.others) if table.others else 0)
        per_batch = _rows_per_batch(table, width, room)
        matrix = _matrix(table, width, per_batch)
        below = legend(table, per_batch, width)[: max(room - len(matrix), 2)]
        if len(matrix) + 1 + len(below) <= room:
            below = [[], *below]
        matrix = [*matrix[: max(height - len(below), 1)], *below]
    longest = max((len(_other_load(each)) for each in table.others), default=0)
    apart = [_other(each, label=min(max(longest + 1, _LABEL), _LONGEST_LABEL)) for each in table.others]
    if apart:
        why = "their load was not constant or not the only one"
        apart.insert(0, [(f"not in the matrix, because {'they failed, or ' if table.failed else ''}{why}:", "muted")])
    return [fitted(row, width) for row in [*matrix, *apart][:height]]


def _rows_per_batch(table: SweepTable, width: int, room: int) -> int:
    """Return how many rows of each batch size leave room for the heading and the whole legend; at least one."""
    for count in range(table.rows_per_batch, 1, -1):
        if 1 + count * len(table.rows) + len(legend(table, count, width)) <= room:
            return count
    return 1


def _matrix(table: SweepTable, width: int, per_batch: int) -> list[TextRow]:
    loads, cells = table.loads, table.cells
    head = max(_HEAD, min(max(len(_row_name(row)) for row in table.rows) + 2, _HEAD + _LABEL))
    marks = _marks(table)
    room = _room(table, marks, column=(width - head) // max(len(loads), 1))
    column = min(max((width - head) // max(len(loads), 1), _NUMBER + room + 1), 2 * _NUMBER + room + 2)
    shade = column - _NUMBER - room
    rows: list[TextRow] = [
        [
            (f"{'batch':>{head - 1}} ", "muted"),
            *[(f"{load.name:>{shade + _NUMBER}}".ljust(column), "muted") for load in loads],
        ]
    ]
    for row in table.rows:
        keys: list[MatrixPlace] = [(row[1], replace(load, settings=row[0])) for load in loads]
        shades = [_shade([cell.output_rate for cell in cells.values()], cells.get(key)) for key in keys]
        first: list[Run] = [(f"{shortened(_row_name(row), head - 1):>{head - 1}} ", "muted")]
        below: list[list[Run]] = [[(" " * head, "")] for _ in table.below]
        for key, (glyph, heat) in zip(keys, shades, strict=True):
            text = marks.get(key, _placeholder(table, key))
            first += [(glyph * shade, heat), *_number(cells.get(key), text, room=room)]
            for line, what in zip(below, table.below, strict=True):
                text = _figure(table, what, key, room=room)
                line += [(glyph * shade, heat), (f"{text:>{_NUMBER}}".ljust(_NUMBER + room), "muted")]
        rows += [first, *below][:per_batch]
    return rows


def _row_name(row: MatrixRow) -> str:
    settings, batch = row
    return f"{settings} · {formats.exact(batch)}" if settings else formats.exact(batch)


def _figure(table: SweepTable, what: str, key: MatrixPlace, *, room: int) -> str:
    cell = table.cells.get(key)
    if what == "latency":
        return _latency(cell, table.metric)
    if what in ("spread", "published"):
        number, _, more = (table.spreads if what == "spread" else table.published).get(key, "").partition(" ")
        return f"{number:>{_NUMBER}} {more if len(more) < room else ''}"
    return _goodput(cell) if what == "goodput" else _reference(table, key)


def _goodput(cell: Cell | None) -> str:
    """Requests/s within all objectives and their share, `15.2  97%`, as wide as a number and its marks."""
    if cell is None or math.isnan(cell.goodput) or math.isnan(cell.share):
        return ""
    return f"{cell.goodput:>{_NUMBER - 1}.3g}{f'{math.floor(cell.share * 100 + 1e-9)}%':>{_MARKS + 1}}"


def _rank(cell: Cell | None, best: bool) -> str:
    """Return the mark of the best cell, or of a finished one that misses the objectives."""
    return "★" if best else ("✗" if cell is not None and cell.missed and not cell.running_now else "")


def _check(table: SweepTable, key: MatrixPlace) -> str:
    """Return the mark of a cell that keeps its thresholds or not."""
    return CELL_MARKS[table.checked[key]] if key in table.checked else ""


def _shade(rates: Sequence[float], cell: Cell | None) -> Run:
    """Return the shade between the smallest and the largest throughput."""
    if cell is None:
        return (" ", "")
    low, high = min(rates), max(rates)
    if high <= low:
        return MATRIX_SHADES[-1]
    return MATRIX_SHADES[min(int((cell.output_rate - low) / (high - low) * len(MATRIX_SHADES)), len(MATRIX_SHADES) - 1)]


def _placeholder(table: SweepTable, key: MatrixPlace) -> str:
    """Return what stands for the number of a cell without one."""
    if key in table.failed:
        return _FAILED
    return SKIPPED if key in table.skipped else "·" if key in table.planned else ""


def _room(table: SweepTable, marks: Mapping[MatrixPlace, str], *, column: int) -> int:
    """Return the cells of the marks behind a number: as many as the longest needs, if columns are wide enough."""
    least = _MARKS + bool(table.checked)
    figures = [*table.spreads.values(), *table.published.values()]
    texts = [*marks.values(), *(text.partition(" ")[2] + " " for text in figures)]
    longest = max((len(text) + 1 for text in texts), default=0)
    return longest if least < longest < column - _NUMBER else least


def _marks(table: SweepTable) -> dict[MatrixPlace, str]:
    """Return what stands behind the number of each cell."""
    found, best = {}, best_key(table.cells)
    dipped = dips({key: cell.output_rate for key, cell in table.cells.items() if not cell.running_now})
    for key, cell in table.cells.items():
        marked = {"▲": cell.preempted, "~": cell.unsteady, "…": cell.running_now, f"×{cell.repeats}": cell.repeats > 1}
        first = _rank(cell, key == best) + _check(table, key) + ("▼" if key in dipped else "")
        found[key] = first + "".join(mark for mark, holds in marked.items() if holds)
    return found


def _number(cell: Cell | None, text: str, *, room: int) -> list[Run]:
    """Return the number of a cell with its marks, or what stands for it."""
    if cell is None:
        return [(f"{text:>{_NUMBER}}".ljust(_NUMBER + room), "bad" if text == _FAILED else "faint")]
    style = "good" if "★" in text else ("warn" if "▲" in text or "▼" in text else "strong")
    return [(f"{formats.count(cell.output_rate):>{_NUMBER}}{text[: room - 1]:<{room}}", style)]


def _latency(cell: Cell | None, metric: str) -> str:
    value = math.nan if cell is None else cell.p99(metric)
    return "" if math.isnan(value) else formats.axis_seconds(value)


def _reference(table: SweepTable, key: MatrixPlace) -> str:
    """Return the difference from the baseline, else the prediction."""
    cell, before, predicted_rate = table.cells.get(key), table.before.get(key), table.predictions.get(key)
    if table.before:
        return "" if cell is None or before is None else formats.relative(cell.output_rate, before).replace(" ", "")
    return "" if predicted_rate is None else f"≈{formats.count(predicted_rate)}"


def _other_load(each: OtherStage) -> str:
    stage = each.stage.stage
    return sanitize_line(stage.label).removesuffix(f" · batch {stage.max_num_seqs}").replace(" to ", "→")


def _other(each: OtherStage, *, label: int) -> TextRow:
    stage, figures = each.stage.stage, each.stage
    number = formats.count(figures.output_rate) + ("▲" if figures.preemptions > 0 else "")
    return [
        (f"{formats.exact(stage.max_num_seqs):>{_HEAD - 1}} ", "muted"),
        (f"{shortened(_other_load(each), label):<{label}}", ""),
        (f"{number:<8}", "warn" if figures.preemptions > 0 else "strong"),
        (each.reason + ("" if figures.ended else ", now"), "muted"),
    ]


class CurvePanel(Panel):
    """Throughput against latency: one point per finished cell, one line per batch size."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        metric = f"{LABELS[frame.view.metric]} p{PERCENTILE} against output tok/s"
        return [[("Throughput and latency ", "title"), (metric, "")], [("labels: requests/s", "muted")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        table = SweepTable.of(frame)
        if len({*table.cells, *(table.planned if frame.end is None else ())}) < 2:
            return _invitation(bool(table.cells), width, height)
        points = [_point(key, cell, table.metric) for key, cell in table.cells.items() if not cell.running_now]
        baseline = frame.shown_baseline
        before = {} if baseline is None else measured(baseline.run)
        known = [_point(key, cell, table.metric) for key, cell in before.items() if not cell.running_now]
        return draw_scatter(points, width, height, latency=f"{LABELS[table.metric]} p{PERCENTILE}", before=known)


def _invitation(one: bool, width: int, height: int) -> Sequence[TextRow]:
    """Return what this chart is for, and the commands that fill it."""
    lines = [(_WHY_EMPTY[one], "strong"), ("", ""), *((text, "muted") for text in _WHAT_FOR), ("", "")]
    lines += [(text, "key") for text in _HOW]
    longest = max(len(text) for text, _ in lines)
    if longest > width or len(lines) > height:
        return placard(f"{_WHY_EMPTY[one]} To measure more: {', then '.join(_HOW)}", width=width, height=height)
    blank: list[TextRow] = [[]] * ((height - len(lines)) // 2)
    return [*blank, *([(" " * ((width - longest) // 2), ""), line] for line in lines)]


def _point(key: MatrixPlace, cell: Cell, metric: str) -> Point:
    batch, load = key
    return Point(
        batch=batch,
        order=load.concurrency if math.isinf(load.rate) else load.rate,
        label=load.name,
        throughput=cell.output_rate,
        latency=cell.p99(metric),
        settings=load.settings,
    )
