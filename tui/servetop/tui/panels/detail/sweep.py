"""The sweep: a matrix of batch size × load, the stages outside it, and the throughput-latency curve."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing import formats
from servetop.tui.drawing.heat_map import SHADES
from servetop.tui.drawing.scatter import Point, draw_scatter
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard, shortened
from servetop.tui.panels.detail.cdf import LABELS
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.sweep_cells import (
    Cell,
    Load,
    MatrixPlace,
    OtherStage,
    deviations,
    dips,
    failed_cells,
    measured,
    others,
    planned_cells,
    predicted,
    rates_before,
)

PERCENTILE = 99
"""Of the latencies on this screen."""
_WHY_EMPTY = ("No stage with a constant load has run yet.", "One constant load only: nothing to compare yet.")
_WHAT_FOR = (
    "A sweep measures every batch size at every request rate;",
    "this chart then shows how much latency more throughput costs.",
)
_HOW = ("servetop sweep --example > grid.toml", "servetop sweep grid.toml")
_HEAD = 9
"""Cells of the batch sizes at the left."""
_NUMBER = 6
_MARKS = 4
"""Cells of the marks behind a number; the last one stays blank."""
_COLUMN = (_NUMBER + _MARKS + 1, 2 * _NUMBER + _MARKS + 2)
"""Cells of a column, at least and at most."""
_SHADES = SHADES[1:]
_LABEL = 22
"""Cells of the load of a stage outside the matrix."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepTable:
    """What the matrix shows."""

    cells: dict[MatrixPlace, Cell]
    planned: Sequence[MatrixPlace] = ()
    predictions: dict[MatrixPlace, float] = field(default_factory=dict)
    failed: Set[MatrixPlace] = frozenset()
    """Cells that could not be measured."""
    others: Sequence[OtherStage] = ()
    before: dict[MatrixPlace, float] = field(default_factory=dict)
    """The baseline's output tokens/s, which take the place of predictions."""
    metric: str = "ttft"
    """The latency below each throughput."""

    @classmethod
    def of(cls, frame: Frame) -> SweepTable:
        """The table as of the frame's time."""
        cells, baseline = measured(frame), frame.shown_baseline
        return cls(
            cells=cells,
            before={} if baseline is None else rates_before(cells, baseline.run),
            planned=planned_cells(frame),
            predictions=predicted(frame),
            failed=failed_cells(frame),
            others=others(frame),
            metric=frame.view.metric,
        )

    @property
    def batches(self) -> list[int | None]:
        """Batch sizes, ascending."""
        return sorted({batch for batch, _ in (*self.cells, *self.planned)}, key=lambda batch: batch or 0)

    @property
    def loads(self) -> list[Load]:
        """Loads, ascending."""
        return sorted({load for _, load in (*self.cells, *self.planned)})

    @property
    def rows_per_batch(self) -> int:
        """Rows of a batch size if there is room: throughput, latency, and the difference or prediction if any."""
        return 3 if self.predictions or self.before else 2

    @property
    def height(self) -> int:
        """Rows of everything."""
        below = 1 + len(self.others) if self.others else 0
        return (1 + self.rows_per_batch * len(self.batches) + 2 if self.batches else 0) + below


class SweepPanel(Panel):
    """Output tokens/s of every planned, running and measured cell."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        parts: list[TextRow] = [[("Sweep ", "title"), ("output tok/s by batch size ↓ and requests/s →", "")]]
        off = deviations(measured(frame), predicted(frame))
        if off:
            mean, most = (formats.percent(value) for value in (float(np.mean(off)), max(off)))
            parts.append([("prediction error ", ""), (mean, "strong"), (f" mean, {most} max", "muted")])
        return parts

    def watch_frame(self, frame: Frame | None) -> None:
        """Limit the height to its rows, which leaves the rest to the curve below."""
        if frame is not None:
            self.styles.max_height = max(SweepTable.of(frame).height, 3) + 2
        super().watch_frame(frame)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        table = SweepTable.of(frame)
        if not table.batches and not table.others:
            return placard("no stages planned or measured", width=width, height=height)
        return draw_sweep(table, width, height)


def draw_sweep(table: SweepTable, width: int, height: int) -> list[TextRow]:
    """The matrix as a heat map with the best finished cell, dips and preempting cells marked, its legend, the others.

    Rows that are missing are taken first from the predictions, then from the latencies.
    """
    matrix: list[TextRow] = []
    if table.batches:
        room = height - 3 - (1 + len(table.others) if table.others else 0)
        per_batch = min(max(room // len(table.batches), 1), table.rows_per_batch)
        matrix = _matrix(table, width, per_batch)
        matrix = [*matrix[: max(height - 2, 1)], [], _legend(table, per_batch, width)]
    apart = [_other(each) for each in table.others]
    if apart:
        why = "their load was not constant or not the only one"
        apart.insert(0, [(f"not in the matrix, because {'they failed, or ' if table.failed else ''}{why}:", "muted")])
    return [fitted(row, width) for row in [*matrix, *apart][:height]]


def _matrix(table: SweepTable, width: int, per_batch: int) -> list[TextRow]:
    loads, cells = table.loads, table.cells
    column = min(max((width - _HEAD) // max(len(loads), 1), _COLUMN[0]), _COLUMN[1])
    shade = column - _NUMBER - _MARKS
    done = {key: cell.output_rate for key, cell in cells.items() if not cell.running_now}
    peak, dipped = max((key for key in done if done[key] > 0), key=lambda key: done[key], default=None), dips(done)
    rows: list[TextRow] = [
        [
            (f"{'batch':>{_HEAD - 1}} ", "muted"),
            *[(f"{load.name:>{shade + _NUMBER}}".ljust(column), "muted") for load in loads],
        ]
    ]
    for batch in table.batches:
        keys = [(batch, load) for load in loads]
        shades = [_shade([cell.output_rate for cell in cells.values()], cells.get(key)) for key in keys]
        first: list[Run] = [(f"{formats.exact(batch):>{_HEAD - 1}} ", "muted")]
        below: list[list[Run]] = [[(" " * _HEAD, "")], [(" " * _HEAD, "")]]
        for key, (glyph, heat) in zip(keys, shades, strict=True):
            marks = ("★" if key == peak else "") + ("▼" if key in dipped else "")
            first += [(glyph * shade, heat), *_number(cells.get(key), marks, _placeholder(table, key))]
            texts = _latency(cells.get(key), table.metric), _reference(table, key)
            for row, text in zip(below, texts, strict=True):
                row += [(glyph * shade, heat), (f"{text:>{_NUMBER}}".ljust(_NUMBER + _MARKS), "muted")]
        shown = [first, below[0], below[1]] if per_batch == 3 else [first, below[0]]
        rows += shown[:per_batch]
    return rows


def _shade(rates: Sequence[float], cell: Cell | None) -> Run:
    """The shade between the smallest and the largest throughput."""
    if cell is None:
        return (" ", "")
    low, high = min(rates), max(rates)
    if high <= low:
        return _SHADES[-1]
    return _SHADES[min(int((cell.output_rate - low) / (high - low) * len(_SHADES)), len(_SHADES) - 1)]


def _placeholder(table: SweepTable, key: MatrixPlace) -> str:
    """What stands for the number of a cell without one."""
    return "✗" if key in table.failed else "·" if key in table.planned else ""


def _number(cell: Cell | None, marks: str, placeholder: str) -> list[Run]:
    if cell is None:
        return [(f"{placeholder:>{_NUMBER}}".ljust(_NUMBER + _MARKS), "bad" if placeholder == "✗" else "faint")]
    marked = {"▲": cell.preempted, "~": cell.unsteady, "…": cell.running_now, f"×{cell.repeats}": cell.repeats > 1}
    marks += "".join(mark for mark, holds in marked.items() if holds)
    style = "good" if "★" in marks else ("warn" if "▲" in marks or "▼" in marks else "strong")
    return [(f"{formats.count(cell.output_rate):>{_NUMBER}}{marks[: _MARKS - 1]:<{_MARKS}}", style)]


def _latency(cell: Cell | None, metric: str) -> str:
    value = math.nan if cell is None else cell.histograms[metric].percentile(PERCENTILE)
    return "" if math.isnan(value) else formats.axis_seconds(value)


def _reference(table: SweepTable, key: MatrixPlace) -> str:
    """The difference from the baseline, else the prediction."""
    cell, before, predicted_rate = table.cells.get(key), table.before.get(key), table.predictions.get(key)
    if table.before:
        return "" if cell is None or before is None else formats.relative(cell.output_rate, before).replace(" ", "")
    return "" if predicted_rate is None else f"≈{formats.count(predicted_rate)}"


def _other(each: OtherStage) -> TextRow:
    stage, figures = each.stage.stage, each.stage
    load = sanitize_line(stage.label).removesuffix(f" · batch {stage.max_num_seqs}").replace(" to ", "→")
    number = formats.count(figures.output_rate) + ("▲" if figures.preemptions > 0 else "")
    return [
        (f"{formats.exact(stage.max_num_seqs):>{_HEAD - 1}} ", "muted"),
        (f"{shortened(load, _LABEL):<{_LABEL}}", ""),
        (f"{number:<8}", "warn" if figures.preemptions > 0 else "strong"),
        (each.reason + ("" if figures.ended else ", now"), "muted"),
    ]


def _legend(table: SweepTable, per_batch: int, width: int) -> TextRow:
    """The legend of shades and of the marks in use, with smaller gaps if there is less room."""
    cells = table.cells.values()
    done = {key: cell.output_rate for key, cell in table.cells.items() if not cell.running_now}
    used = {
        f"below: {LABELS[table.metric]} p{PERCENTILE}": per_batch > 1,
        "≈ predicted": per_batch > 2 and not table.before,
        "% vs baseline": per_batch > 2 and bool(table.before),
        "★ peak": any(done.values()),
        "▼ dip": bool(dips(done)),
        "▲ preempted": any(cell.preempted for cell in cells),
        "~ not steady": any(cell.unsteady for cell in cells),
        "×n mean of n": any(cell.repeats > 1 for cell in cells),
        "… now": any(cell.running_now for cell in cells),
        "· planned": bool({*table.planned} - {*table.cells} - table.failed),
        "✗ failed": bool(table.failed - {*table.cells}),
    }
    labels = ["tok/s", *(label for label, shown in used.items() if shown)]
    gap = next((gap for gap in ("   ", "  ") if len(_SHADES) + 1 + len(gap.join(labels)) <= width), " ")
    return [*_SHADES, (f" {gap.join(labels)}", "muted")]


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
    """What this chart is for, and the commands that fill it."""
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
        batch=batch, order=load.concurrency if math.isinf(load.rate) else load.rate, label=load.name,
        throughput=cell.output_rate, latency=cell.histograms[metric].percentile(PERCENTILE),
    )  # fmt: skip
