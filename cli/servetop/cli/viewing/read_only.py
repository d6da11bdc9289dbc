"""Read-only views of a run and of the recordings folder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from servetop.core.errors import RecordingError
from servetop.core.events import Action, RequestRecord
from servetop.core.interfaces.recording_store import RecordingPreview, RecordingStore
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import RunHeader, RunSource, RunUpdate
from servetop.core.tick import Tick
from servetop.tui.state.command_requests import READ_ONLY


class ReadOnlyRun:
    """Wraps a `RunSource`; rejects every command."""

    def __init__(self, source: RunSource) -> None:
        self._source = source

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def header(self) -> RunHeader:
        return self._source.header

    def poll(self, *, most_ticks: int | None = None) -> RunUpdate:
        return self._source.poll(most_ticks=most_ticks)

    def is_live(self) -> bool:
        return self._source.is_live()

    def send(self, action: Action, *, value: float | None = None, text: str = "") -> None:  # noqa: ARG002
        raise RecordingError(READ_ONLY)

    def requests(
        self, start: float, until: float, *, ended_by: float = math.inf, most: int | None = None
    ) -> Sequence[RequestRecord]:
        return self._source.requests(start, until, ended_by=ended_by, most=most)

    def in_flight(self) -> Sequence[RequestInFlight]:
        return self._source.in_flight()

    def past_ticks(self, first: int, last: int) -> Sequence[Tick]:
        return self._source.past_ticks(first, last)


class ReadOnlyStore:
    """Wraps a `RecordingStore`; rejects renaming and deletion."""

    def __init__(self, store: RecordingStore) -> None:
        self._store = store

    @property
    def location(self) -> str:
        return self._store.location

    def paths(self) -> Sequence[Path]:
        return self._store.paths()

    def preview(self, path: Path, *, bins: int) -> RecordingPreview:
        return self._store.preview(path, bins=bins)

    def open(self, path: Path) -> RunSource:
        return ReadOnlyRun(self._store.open(path))

    def rename(self, path: Path, name: str) -> Path:  # noqa: ARG002
        raise RecordingError(READ_ONLY)

    def delete(self, path: Path) -> None:  # noqa: ARG002
        raise RecordingError(READ_ONLY)
