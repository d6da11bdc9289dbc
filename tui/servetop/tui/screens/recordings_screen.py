"""The recordings browser: choose a run to look at, rename or delete one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from servetop.core.errors import RecordingError
from servetop.core.interfaces.recording_store import RecordingPreview, RecordingState, RecordingStore
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.palette import STYLES
from servetop.tui.drawing.text_runs import Lines
from servetop.tui.panels.detail.recordings_table import SPARK_CELLS, draw_details, draw_recordings, matches, scrolled
from servetop.tui.screens.modal import Modal, PlainText
from servetop.tui.screens.question import TextQuestion
from servetop.tui.state.command_requests import READ_ONLY

_LIVE_SECONDS = 1.0
"""Between two looks at the recording of a run that goes on."""
_HELP = "enter open · / filter · e rename · d delete · esc back"
_ON_SCREEN = "this recording is on the screen: open another one, then delete it"
_WATCHING = "enter open · / filter · esc back"


class RecordingsList(Widget):
    """A row for each recording that the filter lets through; knows which of them nobody has read yet."""

    ALLOW_SELECT = False

    class Chosen(Message):
        """A row was clicked that was under the cursor already."""

    def __init__(self, paths: list[Path]) -> None:
        """`paths`: in the order in which they are shown."""
        super().__init__(id="recordings")
        self.all_paths = self.shown = paths
        self.known: dict[Path, RecordingPreview] = {}
        self.stale: set[Path] = set()
        """Of runs that go on: read a while ago."""
        self.cursor = self.top = 0
        self._words = ""

    @property
    def here(self) -> Path | None:
        """The recording under the cursor."""
        return self.shown[self.cursor] if self.shown else None

    @property
    def _visible(self) -> int:
        return max(self.size.height - 1, 1)

    def unread(self) -> Path | None:
        """The next one to read: those on the screen first, then the others in order, then those of runs that go on."""
        seen = self.shown[self.top : self.top + self._visible]
        new = (path for path in (*seen, *self.all_paths) if path not in self.known)
        return next(new, next((path for path in seen if path in self.stale), None))

    def mark_stale(self) -> bool:
        """Time has gone by: what is known of runs that go on is to be read again; whether there are any."""
        self.stale = {path for path, preview in self.known.items() if preview.info.state is RecordingState.LIVE}
        return bool(self.stale)

    def add(self, path: Path, preview: RecordingPreview) -> None:
        """What is in one of them."""
        self.known[path] = preview
        self.stale.discard(path)
        self.filter(self._words) if self._words else self.refresh()

    def filter(self, words: str) -> None:
        """Show those that match, and keep the cursor on its recording if that is among them."""
        here, self._words = self.here, words
        self.shown = [path for path in self.all_paths if matches(path, self.known.get(path), words)]
        self.cursor = self.shown.index(here) if here in self.shown else 0
        self.move(0)

    def move(self, by: int) -> None:
        """The cursor, by rows; stops at both ends."""
        self.cursor = min(max(self.cursor + by, 0), max(len(self.shown) - 1, 0))
        self.top = scrolled(self.top, self.cursor, self._visible)
        self.refresh()

    def on_resize(self) -> None:
        """The cursor stays on the screen."""
        self.move(0)

    def on_click(self, event: events.Click) -> None:
        """The first click moves the cursor, the second opens."""
        inside = event.get_content_offset(self)
        row = -1 if inside is None or inside.y < 1 else self.top + inside.y - 1
        if not 0 <= row < len(self.shown):
            return
        if row == self.cursor:
            self.post_message(self.Chosen())
        self.move(row - self.cursor)

    def on_mouse_scroll_down(self) -> None:
        """Three rows down."""
        self.move(3)

    def on_mouse_scroll_up(self) -> None:
        """Three rows up."""
        self.move(-3)

    def render(self) -> Lines:
        """See `draw_recordings`."""
        width, height = self.size
        rows = draw_recordings(self.shown, self.known, cursor=self.cursor, top=self.top, size=(width, height))
        return Lines(rows)


class Details(Widget):
    """Two rows on the recording under the cursor."""

    def __init__(self, about: Callable[[], tuple[Path | None, RecordingPreview | None]]) -> None:
        super().__init__(id="details")
        self._about = about

    def render(self) -> Lines:
        """See `draw_details`."""
        return Lines(draw_details(*self._about(), self.size.width))


class RecordingsScreen(Modal[Path]):
    """Its result is the recording to open; None when it was left by escape. Files are read off the UI's thread."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(STYLES)
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("r,q", "dismiss", "back", show=False),
        Binding("enter", "open", "open"),
        Binding("slash", "filter", "filter"),
        Binding("e,f2", "rename", "rename"),
        Binding("d,delete", "delete", "delete"),
        *(
            Binding(key, f"move({by})", show=False)
            for key, by in (
                ("up", -1), ("k", -1), ("down", 1), ("j", 1), ("pageup", -20), ("pagedown", 20),
                ("home", -(10**9)), ("end", 10**9),
            )
        ),
    ]  # fmt: skip

    def __init__(self, store: RecordingStore, *, on_screen: str, read_only: bool = False) -> None:
        """`on_screen`: the name of the recording on the screen, which is not to be deleted; `read_only`: none is."""
        super().__init__()
        self._store = store
        self._on_screen = on_screen
        self._read_only = read_only
        self._unread_available = asyncio.Event()

    def compose(self) -> ComposeResult:
        """A filter, the list, what is known of the row under the cursor, keys."""
        yield Input(placeholder="/ filters by name, engine, model, label", compact=True, id="filter")
        listing = RecordingsList([])
        yield listing
        yield Details(lambda: (listing.here, listing.known.get(listing.here) if listing.here else None))
        yield PlainText("", id="hint")

    def on_mount(self) -> None:
        """List, then read one file after the other."""
        self._reload()
        self.run_worker(self._read_previews())
        self.set_interval(_LIVE_SECONDS, self._refresh_live)

    @property
    def _listing(self) -> RecordingsList:
        return self.query_one(RecordingsList)

    def _reload(self, *, at: Path | None = None) -> None:
        listing = self._listing
        try:
            listing.all_paths = list(self._store.paths())
        except RecordingError as error:
            listing.all_paths = []
            self._say(str(error))
        else:
            self._say(f"{len(listing.all_paths):,} in {self._store.location}")
        before = listing.cursor
        listing.filter(self.query_one(Input).value)
        wanted = listing.shown.index(at) if at in listing.shown else before
        self._moved(wanted - listing.cursor)

    def _say(self, text: str) -> None:
        self.query_one("#hint", PlainText).update(f"{sanitize_line(text)}\n{_WATCHING if self._read_only else _HELP}")

    async def _read_previews(self) -> None:
        """One recording at a time, in a thread; waits while all are read."""
        listing, details = self._listing, self.query_one(Details)
        while self.is_attached:
            path = listing.unread()
            if path is None:
                self._unread_available.clear()
                await self._unread_available.wait()
                continue
            preview = await asyncio.to_thread(self._store.preview, path, bins=SPARK_CELLS)
            listing.add(path, preview)
            if path == listing.here:
                details.refresh()

    def _refresh_live(self) -> None:
        if self._listing.mark_stale():
            self._unread_available.set()

    def _moved(self, by: int) -> None:
        self._listing.move(by)
        self.query_one(Details).refresh()
        self._unread_available.set()

    def action_move(self, by: int) -> None:
        """The cursor, by rows."""
        self._moved(by)

    def action_leave(self) -> None:
        """First out of the filter, then out of the browser."""
        field = self.query_one(Input)
        if field.value or field.has_focus:
            field.value = ""
            self.set_focus(None)
        else:
            self.dismiss(None)

    def action_filter(self) -> None:
        """Type to narrow the list; enter goes back to it."""
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """As you type."""
        self._listing.filter(event.value)
        self._moved(0)

    def on_input_submitted(self) -> None:
        """Back to the list."""
        self.set_focus(None)

    def on_recordings_list_chosen(self) -> None:
        """By mouse."""
        self.action_open()

    def action_open(self) -> None:
        """The one under the cursor."""
        if self._listing.here is not None:
            self.dismiss(self._listing.here)

    def action_rename(self) -> None:
        """Ask for the name."""
        path = self._listing.here
        if self._read_only:
            self._say(READ_ONLY)
        elif path is not None:
            hint = "enter renames, esc goes back"
            question = TextQuestion(f"Rename {sanitize_line(path.stem)} to:", hint=hint, start=sanitize_line(path.stem))
            self.app.push_screen(question, lambda name: self._rename(path, name))

    def _rename(self, path: Path, name: str | None) -> None:
        if not name:
            return
        try:
            renamed = self._store.rename(path, name)
        except RecordingError as error:
            self._say(str(error))
            return
        self._on_screen = renamed.stem if self._on_screen == path.stem else self._on_screen
        self._reload(at=renamed)

    def action_delete(self) -> None:
        """Ask, by a word that nobody types by accident."""
        path = self._listing.here
        if path is None:
            return
        if self._read_only or path.stem == self._on_screen:
            self._say(READ_ONLY if self._read_only else _ON_SCREEN)
            return
        text = f"Delete {sanitize_line(path.name)} for good? Type y, or its name:"
        question = TextQuestion(text, hint="enter deletes, esc goes back")
        self.app.push_screen(question, lambda answer: self._delete(path, answer))

    def _delete(self, path: Path, answer: str | None) -> None:
        if answer not in ("y", "Y", "yes", path.stem, path.name):
            if answer is not None:
                self._say("not deleted")
            return
        try:
            self._store.delete(path)
        except RecordingError as error:
            self._say(str(error))
            return
        self._reload()
        self._say(f"deleted {path.name}")
