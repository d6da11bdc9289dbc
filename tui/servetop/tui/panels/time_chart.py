"""Panels whose charts lie on the shared time axis: the mouse points at instants there."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.message import Message

from servetop.tui.drawing.charts import GUTTER
from servetop.tui.drawing.cursor import time_at_column
from servetop.tui.panels.panel import Panel
from servetop.tui.state.frame import Frame


class TimeChart(Panel):
    """A click puts the cursor, moving over the chart takes a loose one along, the wheel zooms the time axis."""

    shows_cursor = True
    axes_from: ClassVar[int] = 6
    """Rows from which the chart has a vertical axis at its left; with fewer it is a sparkline without one."""

    class Pointed(Message):
        """The mouse is at an instant of the run."""

        def __init__(self, at: float, *, pressed: bool, latency: float | None = None) -> None:
            """Seconds; `pressed`: by a click or with a button down, not just passing over; `latency`: see Cursor."""
            super().__init__()
            self.at = at
            self.pressed = pressed
            self.latency = latency

    class Zoomed(Message):
        """The wheel was turned."""

        def __init__(self, direction: int) -> None:
            """-1 shows less time, 1 more."""
            super().__init__()
            self.direction = direction

    def time_under(self, event: events.MouseEvent) -> float | None:
        """The instant drawn under the mouse; None outside of the chart."""
        offset = event.get_content_offset(self)
        if offset is None or self.frame is None:
            return None
        left = self.left_of_chart(self.frame)
        return time_at_column(offset.x - left, self.frame.window, self.size.width - left)

    def left_of_chart(self, frame: Frame) -> int:  # noqa: ARG002
        """Cells that something else takes before the chart begins: its vertical axis, here."""
        return GUTTER if self.size.height >= self.axes_from else 0

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there."""
        self._point(event, pressed=True)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Take a loose cursor along; with a button down, any."""
        self._point(event, pressed=event.button != 0)

    def _point(self, event: events.MouseEvent, *, pressed: bool) -> None:
        at = self.time_under(event)
        if at is not None:
            self.post_message(self.Pointed(at, pressed=pressed, latency=self.latency_under(event)))

    def latency_under(self, event: events.MouseEvent) -> float | None:  # noqa: ARG002
        """Seconds that the row under the mouse stands for; None where rows are no latencies."""
        return None

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Less time, in more detail."""
        event.stop()
        self.post_message(self.Zoomed(-1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """More time."""
        event.stop()
        self.post_message(self.Zoomed(1))
