"""The recordings that there are, as a viewer that wants to choose one sees them. Nothing here reads a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from servetop.core.interfaces.run_source import RunSource


class RecordingState(StrEnum):
    """What became of a recording's run."""

    LIVE = "live"
    FINISHED = "finished"
    BROKEN_OFF = "broken-off"
    """Its process was killed; everything up to the last tick is there."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingInfo:
    """One line of the list of recordings."""

    path: Path
    started: float
    """Unix time; of an unreadable file, when it was last written."""
    state: RecordingState
    engine: str = ""
    model: str = ""
    label: str = ""
    duration: float = 0.0
    """Seconds from the run's origin to its end, or to its last tick."""
    requests: int = 0
    """Requests that ended, however they did."""
    peak_output_tokens_per_s: float = 0.0
    """In the busiest whole second."""
    exit_code: int | None = None
    problem: str = ""
    """One line: why it is unreadable, or what is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPreview:
    """A recording in one row of a browser."""

    info: RecordingInfo
    output_rates: tuple[float, ...] = ()
    """Output tokens/s in equal bins from second 0 to the last tick; 0 where there are no ticks."""


class RecordingStore(Protocol):
    """A folder of recordings. What it refuses, it refuses by RecordingError, in one line."""

    @property
    def location(self) -> str:
        """Where it is."""
        ...

    def paths(self) -> Sequence[Path]:
        """Every recording, last written first; opens none of them, so that thousands take milliseconds."""
        ...

    def preview(self, path: Path, *, bins: int) -> RecordingPreview:
        """What is in one; milliseconds, from any thread. An unreadable one is told by its state, not raised."""
        ...

    def open(self, path: Path) -> RunSource:
        """Open one to be watched; closes the one that was opened before."""
        ...

    def rename(self, path: Path, name: str) -> Path:
        """Another name in the same folder, with or without the suffix; never over a file that is there."""
        ...

    def delete(self, path: Path) -> None:
        """Remove it for good; refused while its run goes on, or may go on."""
        ...
