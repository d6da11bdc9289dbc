"""A run and a shelf of recordings that can only be looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from servetop.core.errors import RecordingError
from servetop.core.events import Action, RequestRecord
from servetop.core.interfaces.recording_store import RecordingPreview, RecordingStore
from servetop.core.interfaces.run_source import RunHeader, RunSource, RunUpdate
from servetop.core.tick import Tick
from servetop.tui.state.command_requests import READ_ONLY


class ReadOnlyRun:
    """Implements `core.source.RunSource` on another one; sends no command."""

    def __init__(self, source: RunSource) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """Short name for titles."""
        return self._source.name

    @property
    def header(self) -> RunHeader:
        """As of now."""
        return self._source.header

    def poll(self, *, most_ticks: int | None = None) -> RunUpdate:
        """All that is new since the last call."""
        return self._source.poll(most_ticks=most_ticks)

    def is_live(self) -> bool:
        """More will come."""
        return self._source.is_live()

    def send(self, action: Action, *, value: float | None = None, text: str = "") -> None:  # noqa: ARG002
        """Always RecordingError."""
        raise RecordingError(READ_ONLY)

    def requests(
        self, start: float, until: float, *, ended_by: float = math.inf, most: int | None = None
    ) -> Sequence[RequestRecord]:
        """Finished requests that were in flight between two instants."""
        return self._source.requests(start, until, ended_by=ended_by, most=most)

    def past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        """Ticks that `poll` gave before."""
        return self._source.past_ticks(first, last)


class ReadOnlyStore:
    """Implements `core.store.Shelf` on another one; renames and deletes nothing."""

    def __init__(self, store: RecordingStore) -> None:
        self._store = store

    @property
    def location(self) -> str:
        """Where it is."""
        return self._store.location

    def paths(self) -> Sequence[Path]:
        """Every recording, last written first."""
        return self._store.paths()

    def preview(self, path: Path, *, bins: int) -> RecordingPreview:
        """What is in one."""
        return self._store.preview(path, bins=bins)

    def open(self, path: Path) -> RunSource:
        """Open one to be watched."""
        return ReadOnlyRun(self._store.open(path))

    def rename(self, path: Path, name: str) -> Path:  # noqa: ARG002
        """Always RecordingError."""
        raise RecordingError(READ_ONLY)

    def delete(self, path: Path) -> None:  # noqa: ARG002
        """Always RecordingError."""
        raise RecordingError(READ_ONLY)
