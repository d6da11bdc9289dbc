"""The sweep: a matrix of batch size × request rate, and the throughput-latency curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from servetop.tui.drawing import formats
from servetop.tui.drawing.heat_map import SHADES
from servetop.tui.drawing.scatter import Point, draw_scatter
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, placard
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame
from servetop.tui.state.stage_metrics import StageMetrics, dips
from servetop.tui.state.sweep_cells import Cell, CellKey, deviations, measured, planned_cells, predicted

_HEAD = 9
"""Cells of the batch sizes at the left."""
_WIDTH = 11
"""Cells of a column."""
_SHADES = SHADES[1:]


class SweepPanel(Panel):
    """Output tokens/s of every planned, running and measured cell."""

    def title(self, frame: Frame) -> Sequence[TextRow]:
        parts: list[TextRow] = [[("Sweep ", "title"), ("output tok/s", "")]]
        off = deviations(measured(frame.per_stage(), frame.steady), predicted(frame))
        if off:
            mean, most = (formats.percent(value) for value in (float(np.mean(off)), max(off)))
            parts.append([("prediction error ", ""), (mean, "strong"), (f" mean, {most} max", "muted")])
        return [*parts, [("batch size down, requests/s across", "muted")]]

    def watch_frame(self, frame: Frame | None) -> None:
        """Limit the height to its rows, which leaves the rest to the curve below."""
        if frame is not None:
            batches = {batch for batch, _ in (*measured(frame.per_stage(), frame.steady), *planned_cells(frame))}
            self.styles.max_height = 2 * len(batches) + 6
        super().watch_frame(frame)

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        cells, planned = measured(frame.per_stage(), frame.steady), planned_cells(frame)
        if not cells and not planned:
            return placard("no stages planned or measured", width=width, height=height)
        return draw_sweep(cells, planned, width, height, predicted=predicted(frame))


def draw_sweep(
    cells: dict[CellKey, Cell],
    planned: Sequence[CellKey],
    width: int,
    height: int,
    *,
    predicted: Mapping[CellKey, float] = {},
) -> list[TextRow]:
    """The matrix as a heat map, with the best finished cell, dips and preempting cells marked; the legend below.

    If there is room, the `predicted` value is below the measured one.
    """
    keys = {*cells, *planned}
    batches = sorted({batch for batch, _ in keys}, key=lambda batch: batch or 0)
    rates = sorted({rate for _, rate in keys})
    done = {key: cell.output_rate for key, cell in cells.items() if not cell.running_now}
    peak = max(done, key=lambda key: done[key], default=None)
    dipped = dips(done)
    most = max((cell.output_rate for cell in cells.values()), default=0.0)
    column = min(max((width - _HEAD) // max(len(rates), 1), _WIDTH), 2 * _WIDTH)
    after = 3 + (column > _WIDTH)
    tall = 2 if height >= 2 * len(batches) + 4 else 1
    rows: list[TextRow] = [
        [
            (f"{'batch':>{_HEAD - 1}} ", "muted"),
            *[(f"{formats.number(rate):>{column - after}}".ljust(column), "muted") for rate in rates],
        ]
    ]
    for batch in batches:
        marks = {key: ("★" if key == peak else "") + ("▼" if key in dipped else "") for key in keys if key[0] == batch}
        drawn = [
            _shown(cells.get((batch, rate)), marks.get((batch, rate), ""), (batch, rate) in planned, (column, most))
            for rate in rates
        ]
        rows.append([(f"{formats.exact(batch):>{_HEAD - 1}} ", "muted"), *[run for cell in drawn for run in cell]])
        prediction = [predicted.get((batch, rate)) for rate in rates]
        below = [_below(cell[0], value, column) for cell, value in zip(drawn, prediction, strict=True)]
        rows += [[(" " * _HEAD, ""), *[run for cell in below for run in cell]]] * (tall - 1)
    shown: list[TextRow] = [*rows[: max(height - 2, 1)], [], _legend(bool(predicted) and tall > 1, width)]
    return [fitted(row, width) for row in shown[:height]]


def _legend(prediction: bool, width: int) -> TextRow:
    """The legend of shades and marks, with smaller gaps if there is less room."""
    marks = ["★ peak", "▼ dip", "▲ preempted", "~ not steady", "… now", "· planned"]
    labels = ["tok/s", *(["≈ predicted"] if prediction else []), *marks]
    gap = next((gap for gap in ("   ", "  ") if len(_SHADES) + 1 + len(gap.join(labels)) <= width), " ")
    return [*_SHADES, (f" {gap.join(labels)}", "muted")]


def _shown(cell: Cell | None, marks: str, planned: bool, scale: tuple[int, float]) -> list[Run]:
    """Shade, number and marks of one cell; `scale` is the column's width, and the value of the darkest shade."""
    width, most = scale
    if cell is None:
        return [("", ""), (f"{'·' if planned else '':>{width - 3 - (width > _WIDTH)}}".ljust(width), "faint")]
    marked = {"▲": cell.preempted, "~": cell.unsteady, "…": cell.running_now}
    marks += "".join(mark for mark, holds in marked.items() if holds)
    style = "good" if "★" in marks else ("warn" if "▲" in marks or "▼" in marks else "strong")
    shade, heat = _SHADES[min(int(cell.output_rate / most * 4), 3)] if most > 0 else _SHADES[0]
    room = width - 9 - (width > _WIDTH)
    return [(shade * room, heat), (f"{formats.count(cell.output_rate):>6}{marks[:3]:<{width - room - 6}}", style)]


def _below(shade: Run, prediction: float | None, width: int) -> list[Run]:
    """The second row of a cell: its shade, and the prediction."""
    text = "" if prediction is None else f"≈{formats.count(prediction)}"
    cells = 6 if shade[0] else width - 3 - (width > _WIDTH)
    return [shade, (f"{text:>{cells}}".ljust(width - len(shade[0])), "muted")]


class CurvePanel(Panel):
    """Throughput against latency: one point per finished stage."""

    def title(self, frame: Frame) -> Sequence[TextRow]:  # noqa: ARG002
        return [[("Throughput and latency ", "title"), ("output tok/s across, TTFT p90 up", "")]]

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        points = [_point(each) for each in frame.per_stage() if each.ended and each.stage.request_rate]
        return draw_scatter(points, width, height)


def _point(figures: StageMetrics) -> Point:
    return Point(
        batch=figures.stage.max_num_seqs, rate=figures.stage.request_rate or 0.0, throughput=figures.output_rate,
        latency=figures.histograms["ttft"].percentile(90),
    )  # fmt: skip
