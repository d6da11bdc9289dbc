"""The recordings browser: open, rename or delete a recording."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from servetop.core.errors import RecordingError
from servetop.core.interfaces.recording_store import RecordingStore
from servetop.core.text.sanitize import sanitize_line
from servetop.tui.drawing.palette import STYLES
from servetop.tui.panels.detail.recordings_list import RecordingDetails, RecordingsList
from servetop.tui.panels.detail.recordings_table import SPARK_CELLS
from servetop.tui.screens.modal import Modal, PlainText
from servetop.tui.screens.question import TextQuestion
from servetop.tui.state.command_requests import READ_ONLY

_LIVE_SECONDS = 1.0
"""Seconds between two previews of a live run's recording."""
_HELP = "enter open · / filter · e rename · d delete · esc back"
_ON_SCREEN = "this recording is on the screen: open another one, then delete it"
_WATCHING = "enter open · / filter · esc back"


class RecordingsScreen(Modal[Path]):
    """The result is the recording to open, None after Escape. Files are read in a thread."""

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
                ("up", -1),
                ("k", -1),
                ("down", 1),
                ("j", 1),
                ("pageup", -20),
                ("pagedown", 20),
                ("home", -(10**9)),
                ("end", 10**9),
            )
        ),
    ]

    def __init__(self, store: RecordingStore, *, on_screen: str, read_only: bool = False) -> None:
        """`on_screen`: the name of the recording on the screen, which cannot be deleted; `read_only`: none can."""
        super().__init__()
        self._store = store
        self._on_screen = on_screen
        self._read_only = read_only
        self._unread_available = asyncio.Event()
        self._filter = Input(placeholder="/ filters by name, engine, model, label", compact=True, id="filter")
        self._listing = listing = RecordingsList([])
        self._details = RecordingDetails(
            lambda: (listing.current, listing.known.get(listing.current) if listing.current else None)
        )
        self._hint = PlainText("", id="hint")  # not queried: a screen opened while the app exits has no children

    def compose(self) -> ComposeResult:
        yield from (self._filter, self._listing, self._details, self._hint)

    def on_mount(self) -> None:
        self._reload()
        self.run_worker(self._read_previews())
        self.set_interval(_LIVE_SECONDS, self._refresh_live)

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
        listing.filter(self._filter.value)
        position = listing.shown.index(at) if at in listing.shown else before
        self._moved(position - listing.cursor)

    def _say(self, text: str) -> None:
        self._hint.update(f"{sanitize_line(text)}\n{_WATCHING if self._read_only else _HELP}")

    async def _read_previews(self) -> None:
        """Reads one recording after the other; waits while all are read."""
        listing, details = self._listing, self._details
        while self.is_attached:
            path = listing.unread()
            if path is None:
                self._unread_available.clear()
                await self._unread_available.wait()
                continue
            preview = await asyncio.to_thread(self._store.preview, path, bins=SPARK_CELLS)
            listing.add(path, preview)
            if path == listing.current:
                details.refresh()

    def _refresh_live(self) -> None:
        if self._listing.mark_stale():
            self._unread_available.set()

    def _moved(self, by: int) -> None:
        self._listing.move(by)
        self._details.refresh()
        self._unread_available.set()

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self._moved(by)

    def action_leave(self) -> None:
        """Leave the filter, else the browser."""
        field = self._filter
        if field.value or field.has_focus:
            field.value = ""
            self.set_focus(None)
        else:
            self.dismiss(None)

    def action_filter(self) -> None:
        """Focus the filter; Enter returns to the list."""
        self._filter.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._listing.filter(event.value)
        self._moved(0)

    def on_input_submitted(self) -> None:
        self.set_focus(None)

    def on_recordings_list_chosen(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Open the recording under the cursor."""
        if self._listing.current is not None:
            self.dismiss(self._listing.current)

    def action_rename(self) -> None:
        """Ask for the new name."""
        path = self._listing.current
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
        """Ask for confirmation by a typed answer."""
        path = self._listing.current
        if path is None:
            return
        if self._read_only or path.stem == self._on_screen:
            self._say(READ_ONLY if self._read_only else _ON_SCREEN)
            return
        text = f"Delete {sanitize_line(path.name)} permanently? Type y, or its name:"
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
