"""What all panels share: one moment comes in, a title and rows come out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from textual.content import Content, Span
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.widget import Widget

from servetop.tui.drawing.charts import Axes
from servetop.tui.drawing.sanitize import in_cells
from servetop.tui.drawing.scale import steady_limit
from servetop.tui.drawing.text_runs import Lines, TextRow, joined, row_width
from servetop.tui.panels.panel_footer import remarks
from servetop.tui.state.run_state import Frame


class Panel(Widget):
    """A box with the main numbers in its title. Subclasses say, as pure functions, what is in both."""

    ALLOW_SELECT = False
    shows_cursor = False
    """Its figures are those of the cursor's instant; the bottom edge says so."""
    moment: reactive[Frame | None] = reactive(None, repaint=False)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.limit = 0.0
        self._rows: Sequence[TextRow] = ()
        self._drawn_for = Size()

    def watch_moment(self, moment: Frame | None) -> None:
        """Move the axis limit if it must move; repaint only what changed: over ssh every row counts."""
        if moment is None:
            return
        self.limit = steady_limit(self.limit, self.peak(moment))
        before, drawn_for = self._rows, self._drawn_for
        self._draw_rows(moment)
        if self._drawn_for != drawn_for:
            self._set_titles(moment)
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip_longest(before, self._rows)) if old != new]
        regions = [Region(0, y, self.size.width, 1) for y in changed]
        regions += self._set_titles(moment)
        if regions:
            self.refresh(*regions)

    def _draw_rows(self, moment: Frame) -> None:
        width, height = self._drawn_for = self.size
        self._rows = self.draw(moment, width, height) if width > 0 and height > 0 else ()

    def _set_titles(self, moment: Frame) -> list[Region]:
        """The edges that need repainting. Not by `border_title`: setting it repaints the whole panel."""
        title, subtitle = (
            self._content(self.title(moment)),
            self._content(remarks(moment, self.subtitle(moment), pointed=self.shows_cursor)),
        )
        left, top = self.content_offset
        width, height = self.outer_size
        edges = []
        if _looks(self._border_title) != _looks(title):
            self._border_title = title
            edges.append(Region(-left, -top, width, 1))
        if _looks(self._border_subtitle) != _looks(subtitle):
            self._border_subtitle = subtitle
            edges.append(Region(-left, height - 1 - top, width, 1))
        return edges if width and top else []

    def on_resize(self) -> None:
        """Other parts of the title may fit now."""
        self.watch_moment(self.moment)

    def render(self) -> Lines:
        """The rows for the size that the panel has now."""
        if self.moment is None:
            return Lines(())
        if self._drawn_for != self.size:
            self._draw_rows(self.moment)
        return Lines(self._rows)

    def title(self, moment: Frame) -> Sequence[TextRow]:
        """Parts of the title, most important first; those that do not fit are left out."""
        raise NotImplementedError

    def subtitle(self, moment: Frame) -> TextRow:  # noqa: ARG002
        """A remark at the bottom edge; empty for none."""
        return []

    def peak(self, moment: Frame) -> float:  # noqa: ARG002
        """Largest value in the chart, for its limit."""
        return 1.0

    def draw(self, moment: Frame, width: int, height: int) -> Sequence[TextRow]:
        """The rows for an area of that size."""
        raise NotImplementedError

    def axes(self, moment: Frame) -> Axes:
        """The shared time axis with this panel's limit, and marks where stages with a load began."""
        marks = tuple(stage.at for stage in moment.stages if stage.request_rate is not None)
        return Axes(window=moment.window, limit=self.limit, marks=marks, cursor=moment.cursor)

    def _content(self, parts: Sequence[TextRow]) -> Content:
        width = max(self.outer_size.width - 6, 0)
        if parts and row_width(parts[0]) > width:
            parts = [parts[0][:1]]
        text, spans = "", []
        for words, style in joined(parts, width=width, gap=" · "):
            piece = in_cells(words)
            if style:
                look = self.screen.get_visual_style(style, partial=True)
                spans.append(Span(len(text), len(text) + len(piece), look))
            text += piece
        return Content(text, spans)


def _looks(content: Content | None) -> object:
    return content and (content.plain, content.spans)  # contents themselves are equal when their texts are
