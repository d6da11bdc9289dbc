"""The progress of a run without a dashboard, read from its growing recording."""

from __future__ import annotations

from pathlib import Path

from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.cli.headless.progress import BarProgress, BootLog, LineProgress, Plan, Progress
from servetop.core.config import RunConfig
from servetop.core.events import Note, Severity
from servetop.recordings.library.run_sessions import first_of_sitting, resumed_at
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.process.recording_trouble import RECORDER

MOST_TICKS = 400
"""Ticks kept in memory: more than twice those of the window that the status line shows."""


class HeadlessProgress:
    """Reads the growing recording, as a dashboard would, and says how far it is."""

    def __init__(self, config: RunConfig, recording: Path) -> None:
        self._reader = RecordingReader.open(recording)
        self._history = TickHistory()
        self._boot = BootLog()
        notes = self._reader.notes()
        self._resumed_at = resumed_at(notes)
        self._plan = Plan.of(config, first=first_of_sitting(self._reader.stages(), notes))
        self._progress: Progress = BarProgress(self._plan) if console.shows_status() else LineProgress(self._plan)

    def show(self) -> None:
        """Print what is new, and where the run stands."""
        update = self._reader.poll()
        for tick in update.ticks:
            self._history.append(tick)
        if update.log_lines:
            self._boot.hear([line.text for line in update.log_lines], update.log_lines[-1].at)
        for note in update.notes:
            if self._is_news(note):
                self._progress.say(_words(note))
        if len(self._history) > MOST_TICKS:  # a day has 345,600: the line shows a window and sums
            self._history.forget(len(self._history) - MOST_TICKS // 2)
        if len(self._history):
            newest = self._history.ticks[-1]
            if self._progress.due(
                newest.end, loading=self._plan.position(newest.client.gauges.stage) < 0, boot=self._boot
            ):
                self._progress.show(live_stats(self._history, newest.end, span=1.0), self._boot)

    def _is_news(self, note: Note) -> bool:
        """Not of an earlier sitting; those of the run are said at its end, and those of the recorder before."""
        said = note.source in ("run", RECORDER)
        return note.severity is not Severity.INFO and not said and note.at >= self._resumed_at

    def say(self, words: str) -> None:
        """Print a line at once."""
        self._progress.say(words)

    def close(self) -> None:
        """Show the last of it, and leave the terminal tidy."""
        try:
            self.show()
        finally:
            self._progress.finish()
            self._reader.close()


def _words(note: Note) -> str:
    return f"{note.severity.value}: {note.source}: {note.text}"
