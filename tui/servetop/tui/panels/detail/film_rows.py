"""The rows of the batch film: legend, the chosen request, slots, and the waiting requests below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servetop.core.events import RequestRecord
from servetop.core.text import formats
from servetop.tui.drawing.charts import GUTTER, Axes, Bars, block_bars, time_axis
from servetop.tui.drawing.cursor import column_of, crossed
from servetop.tui.drawing.film_grid import (
    DECODE,
    LOOKS,
    PREEMPTED,
    PREFILL,
    STALLED,
    UNRECORDED,
    FilmGrid,
    FilmScale,
    film_row,
    glyph_of,
    halved_row,
)
from servetop.tui.drawing.palette import AGES
from servetop.tui.drawing.text_runs import Run, TextRow, fitted, joined, spread
from servetop.tui.state.film_reader import BatchFilm
from servetop.tui.state.request_rows import row_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmLayout:
    """Rows of each part of the film."""

    rows: int
    """Rows of slots."""
    per_row: int
    """Slots in a row: 1, or 2 in half cells."""
    waiting: int
    """Rows of the waiting requests."""
    shaded: bool
    """Whether ages are glyphs, not only colours."""

    def scrolled(self, top: int, *, selected: int | None, slots: int) -> int:
        """Return the first visible slot: the selected one is visible, and no row is empty without need."""
        shown = self.rows * self.per_row
        if selected is not None:
            top = min(max(top, selected - shown + 1), selected)
        top = max(0, min(top, slots - shown))
        return -(-top // self.per_row) * self.per_row

    def shown_from(self, top: int) -> range:
        """Return the visible slots if the first of them is `top`."""
        return range(top, top + self.rows * self.per_row)

    def slots_at(self, y: int, *, top: int) -> range:
        """Return the slots in a row of the panel."""
        row = y - _ABOVE
        return range(top + row * self.per_row, top + (row + 1) * self.per_row) if 0 <= row < self.rows else range(0)


_ABOVE = 2
"""Rows of the legend and the chosen request."""
_LABEL_EVERY = 5
"""Rows."""
_WIDE_LEGEND = 100
"""Cells of width from which the legend has room for longer texts."""


def film_layout(height: int, *, slots: int, colours: bool) -> FilmLayout:
    """Divide the height; two slots share a row if there are more slots than rows, if there are `colours` for it."""
    room = max(height - _ABOVE - 1, 2)
    waiting = 5 if height >= 36 else (3 if height >= 28 else (2 if height >= 16 else 1))
    rows = max(room - waiting, 1)
    return FilmLayout(rows=rows, per_row=2 if colours and slots > rows else 1, waiting=waiting, shaded=not colours)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmView:
    """The part of the film that is visible, and the selected request and time."""

    layout: FilmLayout
    top: int
    """The first visible slot."""
    selected: int | None
    cursor: float | None
    most_waiting: float
    """Requests at the top of the bars of the waiting ones."""

    @property
    def shown(self) -> range:
        """The slots that have a row."""
        return self.layout.shown_from(self.top)


def draw_film(film: BatchFilm, grid: FilmGrid, scale: FilmScale, view: FilmView, line: TextRow) -> list[TextRow]:
    """Return all rows of the panel; `line` is that of the chosen request."""
    width, per_row = scale.columns + GUTTER, view.layout.per_row
    column = None if view.cursor is None else column_of(view.cursor, film.window, scale.columns)
    slots: list[TextRow] = []
    for number, slot in enumerate(view.shown[::per_row]):
        chosen = view.selected if view.selected in range(slot, slot + per_row) else None
        label = _slot_label(slot, number, chosen=chosen, used=slot < len(grid.states))
        slots.append([label, *crossed(_slot_row(grid, slot, scale.columns, view.layout), column)])
    return [
        legend_row(scale.shade, width, view.layout, live=film.live),
        line,
        *slots,
        *_waiting_rows(film, scale, view),
        time_axis(film.window, scale.columns, GUTTER),
    ]


def _slot_row(grid: FilmGrid, slot: int, columns: int, layout: FilmLayout) -> list[Run]:
    blank = np.zeros(columns, dtype=np.int64)
    states = [grid.states[each] if each < len(grid.states) else blank for each in range(slot, slot + layout.per_row)]
    return film_row(states[0], shaded=layout.shaded) if layout.per_row == 1 else halved_row(*states)


def _slot_label(slot: int, row: int, *, chosen: int | None, used: bool) -> Run:
    """Return the number of the row's first slot, from 1; in the chosen row that of the chosen slot."""
    if chosen is not None:
        return (f"▸{chosen + 1:>{GUTTER - 2}}┤", "key")
    labelled = used and row % _LABEL_EVERY == 0
    return (f"{slot + 1:>{GUTTER - 1}}┤" if labelled else " " * (GUTTER - 1) + "│", "faint")


def legend_row(shade: float, width: int, layout: FilmLayout, *, live: bool) -> TextRow:
    """Prefill, ages with their limits, pauses, and requests without a record; blocks of colour for half cells."""

    cells = 2 if width >= _WIDE_LEGEND else 1

    def swatch(state: int) -> Run:
        whole = layout.per_row > 1 and state != UNRECORDED
        return (("█" if whole else glyph_of(state, shaded=layout.shaded)) * cells, LOOKS[state][1])

    limits = [f" <{formats.axis_seconds(shade * (each + 1))}" for each in range(len(AGES) - 1)]
    ages: list[Run] = [("age", "muted")]
    for each, text in enumerate([*limits, " older"]):
        ages += [(" ", ""), swatch(DECODE + each), (text, "muted")]
    unrecorded = " in flight, not recorded yet" if live and cells > 1 else (" in flight" if live else " not shown")
    names = ((PREEMPTED, " preempted"), (UNRECORDED, unrecorded), (STALLED, " stalled"))
    parts: list[TextRow] = [[swatch(PREFILL), (" prefill", "muted")], ages]
    parts += [[swatch(state), (name, "muted")] for state, name in names]
    return [(" " * GUTTER, ""), *joined(parts, width=width - GUTTER, gap="  ")]


def request_line(
    film: BatchFilm, record: RequestRecord | None, view: FilmView, *, at: float, slots: int, width: int
) -> TextRow:
    """Return the chosen request as of `at`, else the visible slots of all; how admissions are known at the right."""
    known = "admission reported by the engine" if film.reported else "admission estimated from first tokens"
    note: TextRow = [(known if film.stays else "", "muted")]
    room = width - GUTTER
    beside = width >= 2 * len(known) and (record is None or width >= 3 * len(known))
    if view.selected is None:
        visible = f"{view.top + 1}–{min(view.shown.stop, slots)}" if slots else "0"
        left: TextRow = [("slots ", "muted"), (visible, "strong"), (f" of {slots}", "muted")]
    elif record is None:
        left = [("slot ", "muted"), (str(view.selected + 1), "strong"), (": no recorded request", "muted")]
    else:
        room -= len(known) + 2 if beside else 0
        left = _request(record, view.selected, min(at, film.until), width=room)
    left = [(" " * GUTTER, ""), *left]
    return spread(left, note, width=width) if beside else fitted(left, width)


def _request(record: RequestRecord, slot: int, at: float, *, width: int) -> TextRow:
    row = row_of(record, at)
    sent = record.due if record.sent is None else record.sent
    parts: list[TextRow] = [
        [("slot ", "muted"), (str(slot + 1), "strong"), ("  request ", "muted"), (str(record.id), "strong")],
        [(row.status, "bad" if row.failed else "strong")],
        [("age ", "muted"), (formats.seconds(min(at, record.done_at or at) - sent), "strong")],
        [("token ", "muted"), (f"{row.output_tokens:,}", "strong"), (f" of {record.output_tokens:,}", "muted")],
        [("TTFT ", "muted"), (formats.seconds(row.ttft), "strong")],
        [("max ITL ", "muted"), (formats.seconds(row.itl_max), "strong")],
    ]
    return joined(parts, width=width, gap="  ")


def _waiting_rows(film: BatchFilm, scale: FilmScale, view: FilmView) -> list[TextRow]:
    """Return the requests in the engine's queue as bars, with their number at the top."""
    series, height, limit = film.engine.series, view.layout.waiting, view.most_waiting
    if np.isnan(series.waiting).all():
        note: TextRow = [(" " * (GUTTER - 1) + "│", "faint"), ("waiting requests are not exported", "muted")]
        return [note, *([(" " * (GUTTER - 1) + "│", "faint")] for _ in range(height - 1))]
    axes = Axes(window=film.window, limit=limit, cursor=view.cursor)
    bars = Bars(times=series.times, values=series.waiting, style="orange")
    drawn = block_bars(bars, axes, width=scale.columns, height=height)
    labels = {height - 1: "wait", 0: formats.count(limit)} if height > 1 else {0: "wait"}
    return [
        [(f"{labels.get(y, ''):>{GUTTER - 1}}{'┤' if y in labels else '│'}", "faint"), *row]
        for y, row in enumerate(drawn)
    ]
