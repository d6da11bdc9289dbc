"""Recordings of runs that never attached to their server: their only content is the reason, which is printed too."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.errors import RecordingError

if TYPE_CHECKING:
    from servetop.recordings.read.reader import RecordingReader


def never_attached(reader: RecordingReader) -> bool:
    """Whether the run of a recording ended before the server at its URL was recognised."""
    header = reader.header
    return header.config.engine.url is not None and header.engine is None and reader.end is not None


def is_empty(recording: Path) -> bool:
    """Whether a file is the recording of such a run; RecordingError if it cannot be read."""
    from servetop.recordings.read.reader import RecordingReader

    with contextlib.closing(RecordingReader.open(recording)) as reader:
        return never_attached(reader)


def remove_empty(recording: Path) -> None:
    """Remove the recording of a run that never attached; any other one is kept."""
    with contextlib.suppress(RecordingError, OSError):
        if is_empty(recording):
            recording.unlink()
