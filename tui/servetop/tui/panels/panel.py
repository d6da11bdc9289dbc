"""The base class of all panels: a frame comes in, a title and rows come out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from textual.content import Content, Span
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from servetop.core.text import formats
from servetop.tui.drawing.charts import Axes
from servetop.tui.drawing.cursor import MARK
from servetop.tui.drawing.scale import steady_limit
from servetop.tui.drawing.text_runs import Lines, TextRow, in_cells, joined, row_width
from servetop.tui.state.frame import Frame
from servetop.tui.textual_seam import set_titles, titles_of


def footer_parts(frame: Frame, own: TextRow, *, pointed: bool) -> Sequence[TextRow]:
    """Return the panel's own note, after the cursor's time if the panel shows values at the cursor (`pointed`)."""
    if frame.cursor is None or not pointed:
        return [own]
    where: TextRow = [(f"{MARK} ", "cursor"), (formats.clock_time(frame.cursor), "strong")]
    return [where, own] if row_width(own) else [where]


class Panel(Widget):
    """A box with the main numbers in its title; subclasses draw both, as pure functions of the frame."""

    ALLOW_SELECT = False
    shows_cursor = False
    """Whether its values are those at the cursor; the bottom edge shows the cursor's time."""
    frame: reactive[Frame | None] = reactive(None, repaint=False)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.limit = 0.0
        self._rows: Sequence[TextRow] = ()
        self._drawn_for = Size()

    def watch_frame(self, frame: Frame | None) -> None:
        """Draw the frame, and repaint only the rows that changed, because over ssh every row counts."""
        if frame is None:
            return
        before, drawn_for = self._rows, self._drawn_for
        self._draw_rows(frame)
        if self._drawn_for != drawn_for:
            self._set_titles(frame)
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip_longest(before, self._rows)) if old != new]
        regions = [Region(0, y, self.size.width, 1) for y in changed]
        regions += self._set_titles(frame)
        if regions:
            self.refresh(*regions)

    def _draw_rows(self, frame: Frame) -> None:
        self.limit = steady_limit(self.limit, self.peak(frame))
        width, height = self._drawn_for = self.size
        self._rows = self.draw(frame, width, height) if width > 0 and height > 0 else ()

    def _set_titles(self, frame: Frame) -> list[Region]:
        """Sets both titles; returns the edges that need repainting."""
        title, subtitle = (
            self._content(self.title(frame)),
            self._content(footer_parts(frame, self.subtitle(frame), pointed=self.shows_cursor)),
        )
        left, top = self.content_offset
        width, height = self.outer_size
        edges = []
        for before, after, y in zip(titles_of(self), (title, subtitle), (0, height - 1), strict=True):
            if _visible_parts(before) != _visible_parts(after):
                edges.append(Region(-left, y - top, width, 1))
        set_titles(self, title, subtitle)
        return edges if width and top else []

    def on_resize(self) -> None:
        if self._drawn_for != self.size:  # else the compositor was first
            self.watch_frame(self.frame)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The widget's lines; after a change of size this may come before the resize event, and needs the titles."""
        if self.frame is not None and self._drawn_for != self.size:
            self._draw_rows(self.frame)
            self._set_titles(self.frame)
        return super().render_lines(crop)

    def render(self) -> Lines:
        if self.frame is None:
            return Lines(())
        if self._drawn_for != self.size:
            self._draw_rows(self.frame)
        return Lines(self._rows)

    def title(self, frame: Frame) -> Sequence[TextRow]:
        """Parts of the title, most important first; those that do not fit are omitted."""
        raise NotImplementedError

    def subtitle(self, frame: Frame) -> TextRow:  # noqa: ARG002
        """Return a note at the bottom edge; empty for none."""
        return []

    def peak(self, frame: Frame) -> float:  # noqa: ARG002
        """Return the largest value in the chart, for its limit."""
        return 1.0

    def draw(self, frame: Frame, width: int, height: int) -> Sequence[TextRow]:
        """Return the rows for an area of this size."""
        raise NotImplementedError

    def axes(self, frame: Frame) -> Axes:
        """Return the shared time axis with this panel's limit, and marks at the starts of stages with a load."""
        marks = tuple(stage.at for stage in frame.stages if stage.request_rate is not None)
        from_now = frame.live and frame.scrolls
        return Axes(window=frame.window, limit=self.limit, marks=marks, cursor=frame.cursor, from_now=from_now)

    def _content(self, parts: Sequence[TextRow]) -> Content:
        width = max(self.outer_size.width - 6, 0)
        if parts and row_width(parts[0]) > width:
            parts = [parts[0][:1]]
        text, spans = "", []
        for run_text, style in joined(parts, width=width, gap=" · "):
            piece = in_cells(run_text)
            if style:
                visual_style = self.screen.get_visual_style(style, partial=True)
                spans.append(Span(len(text), len(text) + len(piece), visual_style))
            text += piece
        return Content(text, spans)


def _visible_parts(content: Content | None) -> object:
    return content and (content.plain, content.spans)  # contents compare equal if their texts do, whatever their styles
