"""The batch film panel: one row per slot of the running batch, one column per instant."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from textual import events
from textual.message import Message

from servetop.core.arrays import IntArray
from servetop.core.events import RequestRecord
from servetop.core.text import formats
from servetop.tui.drawing.charts import GUTTER
from servetop.tui.drawing.cursor import column_of, time_at_column
from servetop.tui.drawing.film_grid import FilmGrid, FilmScale, film_grid
from servetop.tui.drawing.palette import AGES
from servetop.tui.drawing.scale import peak_of, steady_limit
from servetop.tui.drawing.text_runs import TextRow, placard
from servetop.tui.panels.detail.film_rows import FilmLayout, FilmView, draw_film, film_layout, request_line
from servetop.tui.panels.time_chart import TimeChart
from servetop.tui.state.film_reader import BatchFilm, FilmReader
from servetop.tui.state.film_window import film_length, film_window
from servetop.tui.state.frame import Frame

_SHRINK_BELOW = 0.45
"""The rows keep their height until so small a share of the slots is in use."""
_NOT_STREAMED = "responses are not streamed, so it is not known when their requests ran: remove --no-stream"


class BatchFilmPanel(TimeChart):
    """Draws the film; the cursor and the selected slot choose a request."""

    colours = True
    """Whether the theme has colours; without them, ages are glyphs and each slot has its own row."""
    selected: int | None = None
    """The selected slot, from 0."""
    _film: BatchFilm | None = None
    _grid: FilmGrid | None = None
    _length, _columns = 0.0, 0
    _slots = 0
    _waiting = 0.0
    _top = 0

    class Opened(Message):
        """A request was double-clicked."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._reader = FilmReader()

    def title(self, frame: Frame) -> Sequence[TextRow]:
        parts: list[TextRow] = [[("Batch film", "title")]]
        film = self._film
        if film is None:
            return parts
        engine, load = frame.stats.engine, frame.stats.load
        if engine is not None and engine.running is not None:
            parts.append([("engine running ", ""), (formats.count(engine.running), "strong")])
        if engine is not None and engine.waiting is not None:
            parts.append([("waiting ", ""), (formats.count(engine.waiting), "strong")])
        if not film.complete:
            parts.append([(f"{len(film.records):,} of {film.total:,} requests shown", "warn")])
        shown = self._layout(self.size.height).shown_from(self._top)
        if self.selected is not None and self._grid is not None and len(self._grid.states) > len(shown):
            parts.append([("slots ", ""), (f"{shown.start + 1}–{shown.stop} of {len(self._grid.states)}", "strong")])
        parts.append([("client in flight ", ""), (formats.count(load.in_flight), "strong")])
        if frame.live and film.until >= frame.view.playhead.at:
            parts.append([("recorded when they end", "muted")])
        return parts

    def peak(self, frame: Frame) -> float:
        """Seconds of age for each shade, which all together cover E2EL at p90; in few steps, because each recolours."""
        wanted = (peak_of(frame.stats.series.latencies["e2el"][1]) or 1.0) / len(AGES)
        magnitude = 10.0 ** math.floor(math.log10(wanted))
        return next(step for step in (1.0, 2.0, 5.0, 10.0) if step * magnitude >= wanted * (1 - 1e-9)) * magnitude

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        columns = width - GUTTER
        if columns < 1 or frame.booting:
            return placard("no request yet", width=width, height=height)
        if not frame.header.config.workload.stream:
            return placard(_NOT_STREAMED, width=width, height=height)
        self._length = film_length(self._length if columns == self._columns else 0.0, frame, columns)
        self._columns = columns
        film = self._film = self._reader.read(frame, film_window(frame, self._length))
        scale = FilmScale(window=film.window, until=film.until, columns=columns, shade=self.limit)
        series = film.engine.series
        grid = film_grid(film.stays, film.slots, scale, preemptions=(series.times, series.preemptions))
        grid = self._grid = grid.with_unrecorded(_unrecorded(film, grid, scale))
        used = len(grid.states)
        self._slots = self._slots if _SHRINK_BELOW * self._slots <= used <= self._slots else used
        self._waiting = steady_limit(self._waiting, peak_of(series.waiting))
        layout = self._layout(height)
        self._top = layout.scrolled(self._top, selected=self.selected, slots=len(grid.states))
        view = FilmView(
            layout=layout, top=self._top, selected=self.selected, cursor=frame.cursor, most_waiting=self._waiting
        )
        at = _column_end(frame.cursor, scale)
        line = request_line(film, self.chosen(), view, at=at, slots=len(grid.states), width=width)
        return draw_film(film, grid, scale, view, line)

    def _layout(self, height: int) -> FilmLayout:
        return film_layout(height, slots=self._slots, colours=self.colours)

    def show_again(self) -> None:
        """Redraw at once, after a change of the selection."""
        self.watch_frame(self.frame)

    def choose(self, rows: int) -> None:
        """Move the selection by slots; the first time, select the first one on the screen."""
        last = max(0 if self._grid is None else len(self._grid.states) - 1, 0)
        self.selected = self._top if self.selected is None else min(max(self.selected + rows, 0), last)
        self.show_again()

    def chosen(self) -> RequestRecord | None:
        """Return the request in the selected slot at the cursor; without a cursor the newest one in it."""
        film, grid, frame = self._film, self._grid, self.frame
        if film is None or grid is None or frame is None or self.selected is None or self.selected >= len(grid.owners):
            return None
        owners = grid.owners[self.selected]
        if frame.cursor is None:
            known = owners[owners >= 0]
            return film.records[int(known[-1])] if known.size else None
        column = column_of(frame.cursor, film.window, len(owners))
        return None if column is None else film.records.get(int(owners[column]))

    def time_under(self, event: events.MouseEvent) -> float | None:
        offset = event.get_content_offset(self)
        if offset is None or self._film is None:
            return None
        return time_at_column(offset.x - GUTTER, self._film.window, self.size.width - GUTTER)

    def on_click(self, event: events.Click) -> None:
        offset, frame, grid = event.get_content_offset(self), self.frame, self._grid
        if offset is None or frame is None or grid is None:
            return
        under = self._layout(self.size.height).slots_at(offset.y, top=self._top)
        column = offset.x - GUTTER
        inside = [slot for slot in under if slot < len(grid.owners)]
        taken = [slot for slot in inside if 0 <= column < grid.owners.shape[1] and grid.owners[slot, column] >= 0]
        self.selected = next(iter(taken or inside), self.selected)
        super().on_click(event)
        self.show_again()
        if event.chain == 2:
            self.post_message(self.Opened())


def _column_end(cursor: float | None, scale: FilmScale) -> float:
    """Return the time up to which the cursor's column is drawn; without a cursor on the film, its end."""
    column = None if cursor is None else column_of(cursor, scale.window, scale.columns)
    at = None if column is None else time_at_column(column, scale.window, scale.columns)
    return scale.until if at is None else min(at, scale.until)


def _unrecorded(film: BatchFilm, grid: FilmGrid, scale: FilmScale) -> IntArray:
    """Return requests in the batch that have no record, by column: those in flight, at most what the engine reports."""
    counts = np.zeros(scale.columns, dtype=np.int64)
    series, (left, right) = film.engine.series, film.window
    if not series.times.size:
        return counts
    ends = left + (np.arange(scale.columns) + 1) * (right - left) / scale.columns
    bins = np.clip(np.searchsorted(series.times, ends - 1e-9), 0, series.times.size - 1)
    known = grid.running()
    missing = film.unrecorded()[bins]
    running = series.running[bins]
    missing = np.where(np.isnan(running), missing, np.minimum(missing, running - known))
    shown = np.maximum(np.rint(missing), 0).astype(np.int64)
    return np.where(ends <= film.until + 1e-9, shown, 0)
