"""What a dashboard gets besides its run: recordings to open, theme, motion, and callbacks to its process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.events import Note
from servetop.core.interfaces.recording_store import RecordingStore
from servetop.core.interfaces.run_source import RunSource

if TYPE_CHECKING:
    from servetop.analysis.comparison.comparison import Comparison
    from servetop.analysis.sweep.sweep_verdict import SweepVerdict

SavePicture = Callable[[str, str], Sequence[Path]]
"""Writes an SVG to new files with this name, without a suffix, and returns where they are; ServetopError."""
WriteReport = Callable[[Path], Path]
"""Writes the report of a recording to a new file, and returns where it is; ServetopError."""
Compare = Callable[[Path], "Comparison"]
"""Compares the stages of a recording that are over with those of the baseline; RecordingError if it cannot be read."""
ReadSweep = Callable[[Path], "SweepVerdict | None"]
"""Judges the cells of a recording by their exact figures; RecordingError if it cannot be read."""
OpenBaseline = Callable[[], AbstractContextManager[RunSource]]
"""Opens a recording, and closes it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardOptions:
    """Settings of one dashboard; the defaults suit a recording in a terminal."""

    store: RecordingStore | None = None
    """Recordings to choose from; None disables the recordings browser."""
    browse: bool = False
    """Open the recordings browser first."""
    theme: str = ""
    """One of `themes.THEMES`; empty selects one that suits the terminal."""
    reduced_motion: bool = False
    """Redraw once a second, without blinking or animation."""
    remember_theme: Callable[[str], None] | None = None
    """Called with every theme that the user selects."""
    exit_requested: Callable[[], str] | None = None
    """Polled 20 times a second; the first non-empty return value ends the dashboard and becomes its result."""
    read_only: bool = False
    """Disable the keys that steer the run, and the renaming and deletion of recordings."""
    unrecorded_notes: Callable[[], Sequence[Note]] | None = None
    """Polled 20 times a second: new notes of the run that its recording may not contain."""
    recording: Path | None = None
    """The file of the run that is shown first."""
    compare: Compare | None = None
    """Called in a thread, again after each stage of a live run."""
    baseline: OpenBaseline | None = None
    """Opens the run that the one on the screen is compared with; called in a thread after the first frame."""
    save_picture: SavePicture | None = None
    """Called in a thread with the name and the SVG of a picture; None refuses it."""
    write_report: WriteReport | None = None
    """Called in a thread with the recording on the screen; None refuses it."""
    read_sweep: ReadSweep | None = None
    """Called in a thread for a sweep that has ended."""
    on_first_frame: Callable[[], None] | None = None
    """Called once the first frame is drawn."""
