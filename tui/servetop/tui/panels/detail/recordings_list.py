"""The list of recordings in the browser, and the details of the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual import events
from textual.message import Message
from textual.widget import Widget

from servetop.core.interfaces.recording_store import RecordingPreview, RecordingState
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.recordings_table import draw_details, draw_recordings, matches, scrolled


class RecordingsList(Widget):
    """One row per recording that matches the filter; tracks which recordings are unread."""

    ALLOW_SELECT = False

    class Chosen(Message):
        """A click on the row under the cursor."""

    def __init__(self, paths: list[Path]) -> None:
        """`paths` in the order in which they are shown."""
        super().__init__(id="recordings")
        self.all_paths = self.shown = paths
        self.known: dict[Path, RecordingPreview] = {}
        self.stale: set[Path] = set()
        """Recordings of live runs whose preview is out of date."""
        self.cursor = self.top = 0
        self._query = ""

    @property
    def current(self) -> Path | None:
        """The recording under the cursor."""
        return self.shown[self.cursor] if self.shown else None

    @property
    def _visible(self) -> int:
        return max(self.size.height - 1, 1)

    def unread(self) -> Path | None:
        """Return the next recording to read: visible ones first, then the others in order, then visible stale ones."""
        seen = self.shown[self.top : self.top + self._visible]
        new = (path for path in (*seen, *self.all_paths) if path not in self.known)
        return next(new, next((path for path in seen if path in self.stale), None))

    def mark_stale(self) -> bool:
        """Mark the previews of live runs as out of date; whether there are any."""
        self.stale = {path for path, preview in self.known.items() if preview.info.state is RecordingState.LIVE}
        return bool(self.stale)

    def add(self, path: Path, preview: RecordingPreview) -> None:
        """Store the preview of a recording."""
        self.known[path] = preview
        self.stale.discard(path)
        self.filter(self._query) if self._query else self.refresh()

    def filter(self, query: str) -> None:
        """Show the recordings that match a query; the cursor stays on its recording if that matches."""
        current, self._query = self.current, query
        self.shown = [path for path in self.all_paths if matches(path, self.known.get(path), query)]
        self.cursor = self.shown.index(current) if current in self.shown else 0
        self.move(0)

    def move(self, by: int) -> None:
        """Move the cursor by rows; stops at both ends."""
        self.cursor = min(max(self.cursor + by, 0), max(len(self.shown) - 1, 0))
        self.top = scrolled(self.top, self.cursor, self._visible)
        self.refresh()

    def on_resize(self) -> None:
        self.move(0)

    def on_click(self, event: events.Click) -> None:
        inside = event.get_content_offset(self)
        row = -1 if inside is None or inside.y < 1 else self.top + inside.y - 1
        if not 0 <= row < len(self.shown):
            return
        if row == self.cursor:
            self.post_message(self.Chosen())
        self.move(row - self.cursor)

    def on_mouse_scroll_down(self) -> None:
        self.move(3)

    def on_mouse_scroll_up(self) -> None:
        self.move(-3)

    def render(self) -> Lines:
        width, height = self.size
        rows = draw_recordings(self.shown, self.known, cursor=self.cursor, top=self.top, size=(width, height))
        return Lines(rows)


class RecordingDetails(Widget):
    """Two rows on the recording under the cursor."""

    def __init__(self, about: Callable[[], tuple[Path | None, RecordingPreview | None]]) -> None:
        super().__init__(id="details")
        self._about = about

    def render(self) -> Lines:
        return Lines(draw_details(*self._about(), self.size.width))
