"""A run without a dashboard: progress on stderr while it runs, the summary on stdout at its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from servetop.cli import console
from servetop.cli.progress import BarProgress, LineProgress, Progress
from servetop.cli.report import print_end, print_summary
from servetop.cli.run_process import play
from servetop.core.boot import boot_step
from servetop.core.config import RunConfig
from servetop.core.events import Note, Severity
from servetop.core.history import TickHistory
from servetop.core.stats import live_stats
from servetop.recordings.reader import RecordingReader
from servetop.recordings.summary import run_summary

POLL_SECONDS = 0.5


def run_headless(config: RunConfig, recording: Path, *, as_json: bool, resume: bool = False) -> int:
    """Play the run here and print what came of it; the exit code."""
    follower = Follower(config, recording)
    try:
        end = play(config, recording, resume=resume, watch=follower.follow)
    finally:
        follower.finish()
    reader = RecordingReader.open(recording)
    try:
        summary = run_summary(reader)
        if as_json or summary["num_prompts"]:
            print_summary(summary, as_json=as_json)
    finally:
        reader.close()
    print_end(recording)
    return end.exit_code


class Follower:
    """Reads the growing recording, as a dashboard would, and says how far it is."""

    def __init__(self, config: RunConfig, recording: Path) -> None:
        self._recording = recording
        self._history = TickHistory()
        self._log_line = self._step = ""
        self._progress: Progress = BarProgress(config) if console.shows_status() else LineProgress(config)

    async def follow(self) -> None:
        """Until cancelled; twice a second."""
        reader = RecordingReader.open(self._recording)
        try:
            while True:
                self._show(reader)
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._show(reader)
            reader.close()

    def _show(self, reader: RecordingReader) -> None:
        update = reader.poll()
        for tick in update.ticks:
            self._history.append(tick)
        if update.log_lines:
            lines = [line.text for line in update.log_lines]
            self._step = boot_step(lines) or self._step
            self._log_line = f"{self._step}  {lines[-1]}" if self._step else lines[-1]
        for note in update.notes:
            if note.severity is not Severity.INFO and note.source != "run":  # the last line says that
                self._progress.say(_words(note))
        if len(self._history):
            at = self._history.ticks[-1].end
            self._progress.show(live_stats(self._history, at, span=1.0), self._log_line)

    def finish(self) -> None:
        """Leave the terminal tidy."""
        self._progress.finish()


def _words(note: Note) -> str:
    return f"{note.severity.value}: {note.source}: {note.text}"
