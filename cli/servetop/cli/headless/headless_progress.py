"""The progress of a run without a dashboard, read from its growing recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.diagnosis.run_record import restarts
from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.sweep.repeat_means import GrowingSweep
from servetop.analysis.sweep.sweep_rest import sweep_rest
from servetop.cli.headless.progress import BarProgress, BootLog, LineProgress, Plan, Progress
from servetop.core.config import RunConfig
from servetop.core.events import Note, Severity
from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.text import formats
from servetop.recordings.library.run_sessions import first_of_session, resumed_at
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.process.recording_trouble import RECORDER

PROGRESS = ("search", "sweep")
"""Sources of notes, each of which is a line of the progress: of a search, and of a sweep whose rows end."""
MOST_TICKS = 400
"""Ticks kept in memory: more than twice the window of the status line."""


class HeadlessProgress:
    """Follows the growing recording, as a dashboard does, and prints the progress."""

    def __init__(self, config: RunConfig, recording: Path) -> None:
        self._reader = RecordingReader.open(recording)
        self._history = TickHistory()
        self._boot = BootLog()
        notes = self._reader.notes()
        self._resumed_at = resumed_at(notes)
        plan = Plan.of(config, first=first_of_session(self._reader.stages(), notes))
        self._plan = replace(plan, rest=self._rest if config.drain_at_stages else None)
        self._recorded: list[RunUpdate] = []
        self._sweep = GrowingSweep(max_failures=config.max_failures, attached=config.engine.url is not None)
        self._told = 0
        self._progress: Progress = BarProgress(self._plan) if console.shows_status() else LineProgress(self._plan)

    def show(self) -> None:
        """Print new notes, and the state of the run."""
        update = self._reader.poll()
        if self._plan.rest is not None:
            self._recorded.append(RunUpdate(stages=update.stages, skipped=update.skipped, notes=update.notes))
            self._sweep.add(update)
            self._show_repeats(update.ticks[-1].end if update.ticks else 0.0)
        for tick in update.ticks:
            self._history.append(tick)
        if update.log_lines:
            self._boot.add([line.text for line in update.log_lines], update.log_lines[-1].at)
        for note in update.notes:
            if self._is_printed(note):
                self._progress.print_line(_line_of(note))
        if len(self._history) > MOST_TICKS:  # a day has 345,600: the line shows a window and sums
            self._history.drop_first(len(self._history) - MOST_TICKS // 2)
        if len(self._history):
            newest = self._history.ticks[-1]
            if self._progress.due(
                newest.end, loading=self._plan.position(newest.client.gauges.stage) < 0, boot=self._boot
            ):
                self._progress.show(live_stats(self._history, newest.end, span=1.0), self._boot)

    def _show_repeats(self, at: float) -> None:
        """Print the means of cells of which another repeat has ended, if there are several starts of the engine."""
        ended = self._sweep.ended
        new, self._told = ended[self._told :], len(ended)
        cells = {StageLoad.of(each) for each in new if each.at >= self._resumed_at}
        if cells:
            for load, mean in self._sweep.means().items():
                if load in cells and mean.interval is not None:
                    figure = f"{mean.text} tok/s over {mean.starts} starts"
                    self._progress.print_line(f"{formats.clock(at)}  {load.label}: {figure}")

    def _rest(self, at: float) -> str:
        """Return what is left of a sweep in words."""
        return sweep_rest(
            self._reader.header.config.stages,
            [stage for update in self._recorded for stage in update.stages],
            skipped=[cell for update in self._recorded for cell in update.skipped],
            notes=[note for update in self._recorded for note in update.notes],
            at=at,
        ).text

    def _is_printed(self, note: Note) -> bool:
        """Whether a note is printed here: not one of an earlier session, nor of the run or the recorder."""
        elsewhere = note.source in ("run", RECORDER)
        is_news = note.severity is not Severity.INFO or _is_progress(note)
        return is_news and not elsewhere and note.at >= self._resumed_at

    def print_line(self, line: str) -> None:
        """Print a line at once."""
        self._progress.print_line(line)

    def close(self) -> None:
        """Show the final state, and restore the terminal."""
        try:
            self.show()
        finally:
            self._progress.finish()
            self._reader.close()


def _is_progress(note: Note) -> bool:
    """Whether a note is part of the progress: one of a search or a sweep, or a restart of the engine."""
    return note.source in PROGRESS or bool(restarts([note]))


def _line_of(note: Note) -> str:
    """A note as a line: with its time if it is progress, else with its severity."""
    if _is_progress(note) and note.severity is Severity.INFO:
        return f"{formats.clock(note.at)}  {note.text}"
    return f"{note.severity.value}: {note.source}: {note.text}"
