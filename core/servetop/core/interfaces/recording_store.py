"""The interface through which a viewer lists, opens, renames and deletes recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from servetop.core.interfaces.run_source import RunSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingInfo:
    """One line of the list of recordings."""

    path: Path
    engine: str = ""
    model: str = ""
    label: str = ""
    started: float
    """Unix time of the start; for an unreadable file, of the last write."""
    state: RecordingState
    duration: float = 0.0
    """Seconds from the start of the run to its end, or to its last tick."""
    requests: int = 0
    """Finished requests, whatever their status."""
    peak_output_tokens_per_s: float = 0.0
    """Peak over the whole seconds of the run."""
    watch: bool = False
    """Whether it is a watch, which has no requests and no output tokens of its own."""
    exit_code: int | None = None
    problem: str = ""
    """One line: why it is unreadable, or what is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingResults:
    """The main results of a run without its warm-ups; None where they are unknown or not quickly read."""

    verdict: str = ""
    """What the run found, in one line; empty if the recording does not contain it."""
    ttft_p99: float | None = None
    """Seconds, of successful requests."""
    goodput_share: float | None = None
    """Share of the ended requests that succeeded within all objectives, 0..1; None without objectives."""
    preemptions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPreview:
    """A recording with its throughput over time."""

    info: RecordingInfo
    results: RecordingResults = RecordingResults()
    output_rates: tuple[float, ...] = ()
    """Output tokens/s in equal bins from second 0 to the last tick; 0 in bins without ticks."""


class RecordingState(StrEnum):
    """The state of a recording's run."""

    LIVE = "live"
    FINISHED = "finished"
    BROKEN_OFF = "broken-off"
    """Its process was killed; everything up to the last tick is recorded."""
    UNREADABLE = "unreadable"


class RecordingStore(Protocol):
    """A folder of recordings. Operations that are not possible raise RecordingError with a one-line message."""

    @property
    def location(self) -> str:
        """The path of the folder, for display."""
        ...

    def paths(self) -> Sequence[Path]:
        """Return every recording, last written first, without opening any: thousands take milliseconds."""
        ...

    def preview(self, path: Path, *, bins: int) -> RecordingPreview:
        """Read one recording, in milliseconds, from any thread. An unreadable one is reported by its state."""
        ...

    def open(self, path: Path) -> RunSource:
        """Opens a recording; closes the previous one."""
        ...

    def rename(self, path: Path, name: str) -> Path:
        """Renames a recording within the folder, with or without the suffix; never overwrites a file."""
        ...

    def delete(self, path: Path) -> None:
        """Deletes a recording; raises if its run is live, or may be."""
        ...
