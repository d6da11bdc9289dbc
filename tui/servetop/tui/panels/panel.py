"""What all panels share: one moment comes in, a title and rows come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.content import Content, Span
from textual.reactive import reactive
from textual.widget import Widget

from servetop.tui.charts import Axes
from servetop.tui.lines import Lines, Row, joined, row_width
from servetop.tui.palette import STYLES
from servetop.tui.run_so_far import Moment
from servetop.tui.scale import steady_limit


class Panel(Widget):
    """A box with the main numbers in its title. Subclasses say, as pure functions, what is in both."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(STYLES)
    ALLOW_SELECT = False
    moment: reactive[Moment | None] = reactive(None)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.limit = 0.0

    def watch_moment(self, moment: Moment | None) -> None:
        """Set the titles; move the axis limit if it must move."""
        if moment is None:
            return
        self.limit = steady_limit(self.limit, self.peak(moment))
        self.border_title = self._content(self.title(moment))
        self.border_subtitle = self._content([self.subtitle(moment)])

    def on_resize(self) -> None:
        """Other parts of the title may fit now."""
        self.watch_moment(self.moment)

    def render(self) -> Lines:
        """The rows for the size that the panel has now."""
        width, height = self.size
        if self.moment is None or width <= 0 or height <= 0:
            return Lines(())
        return Lines(self.draw(self.moment, width, height))

    def title(self, moment: Moment) -> Sequence[Row]:
        """Parts of the title, most important first; those that do not fit are left out."""
        raise NotImplementedError

    def subtitle(self, moment: Moment) -> Row:  # noqa: ARG002
        """A remark at the bottom edge; empty for none."""
        return []

    def peak(self, moment: Moment) -> float:  # noqa: ARG002
        """Largest value in the chart, for its limit."""
        return 1.0

    def draw(self, moment: Moment, width: int, height: int) -> Sequence[Row]:
        """The rows for an area of that size."""
        raise NotImplementedError

    def axes(self, moment: Moment) -> Axes:
        """The shared time axis with this panel's limit."""
        return Axes(window=moment.window, limit=self.limit, marks=stage_marks(moment))

    def _content(self, parts: Sequence[Row]) -> Content:
        width = max(self.outer_size.width - 6, 0)
        if parts and row_width(parts[0]) > width:
            parts = [parts[0][:1]]
        row = joined(parts, width=width, gap=" · ")
        text, spans = "", []
        for piece, style in row:
            if style:
                look = self.get_visual_style(style, partial=True)
                spans.append(Span(len(text), len(text) + len(piece), look))
            text += piece
        return Content(text, spans)


def stage_marks(moment: Moment) -> tuple[float, ...]:
    """Instants at which stages with a load began."""
    return tuple(stage.at for stage in moment.stages if stage.request_rate is not None)
