"""Panels with a chart on the shared time axis, and their reactions to the mouse."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.message import Message

from servetop.tui.drawing.charts import GUTTER
from servetop.tui.drawing.cursor import time_at_column
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame


class TimeChart(Panel):
    """A click sets the cursor, a movement takes one that follows the mouse along, the wheel zooms the time axis."""

    shows_cursor = True
    axes_from: ClassVar[int] = 6
    """Rows from which the chart has a vertical axis; with fewer it is a sparkline without one."""

    class Pointed(Message):
        """The mouse is over a time of the run."""

        def __init__(self, at: float, *, pressed: bool, latency: float | None = None) -> None:
            """`at` in seconds; `pressed` for a click or a drag, not for a movement alone; `latency` as in Cursor."""
            super().__init__()
            self.at = at
            self.pressed = pressed
            self.latency = latency

    class Zoomed(Message):
        """The mouse wheel was turned."""

        def __init__(self, direction: int) -> None:
            """-1 shows less time, 1 more."""
            super().__init__()
            self.direction = direction

    def time_under(self, event: events.MouseEvent) -> float | None:
        """Return the time drawn under the mouse; None outside of the chart and right of the newest data."""
        offset = event.get_content_offset(self)
        if offset is None or self.frame is None:
            return None
        left, newest = self.left_of_chart(self.frame), self.frame.view.playhead.at
        width = self.size.width - left
        at = time_at_column(offset.x - left, self.frame.window, width)
        return None if at is None or at >= newest + self.frame.axis.span / width else min(at, newest)

    def left_of_chart(self, frame: Frame) -> int:  # noqa: ARG002
        """Cells to the left of the chart, such as its vertical axis."""
        return GUTTER if self.size.height >= self.axes_from else 0

    def on_click(self, event: events.Click) -> None:
        self._point(event, pressed=True)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point(event, pressed=event.button != 0)

    def _point(self, event: events.MouseEvent, *, pressed: bool) -> None:
        at = self.time_under(event)
        if at is not None:
            self.post_message(self.Pointed(at, pressed=pressed, latency=self.latency_under(event)))

    def latency_under(self, event: events.MouseEvent) -> float | None:  # noqa: ARG002
        """Return the latency in seconds of the row under the mouse; None if rows are not latencies."""
        return None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Zoomed(-1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Zoomed(1))
