"""A run without a dashboard: progress on stderr while it runs, the summary on stdout at its end.

Modules for progress, summary and tables are imported after the first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.config import RunConfig
from servetop.core.errors import RecordingError
from servetop.run import console
from servetop.run.process.execution import Execution
from servetop.run.process.finish_command import run_on_finish
from servetop.run.process.run_signals import RunSignals
from servetop.run.run_process import FinishedRun, RunContext, execute, final_summary

if TYPE_CHECKING:
    from servetop.cli.headless.headless_progress import HeadlessProgress
    from servetop.cli.watch.fleet_progress import FleetProgress
    from servetop.cli.watch.watch_progress import WatchProgress
    from servetop.run.process.first_sender import FirstSender

POLL_SECONDS = 0.5


def run_headless(
    config: RunConfig,
    recording: Path,
    *,
    as_json: bool,
    execution: Execution,
    sender: FirstSender | None = None,
) -> int:
    """Execute the run in this process and print its summary; return its exit code.

    A recording that is thrown away is not named. Signals after the end of the run are ignored: the summary is printed,
    and the exit code is that of the recording.
    """
    with RunSignals().caught() as signals:
        observer, command_line = HeadlessObserver(config, recording), ["servetop", *sys.argv[1:]]
        context = RunContext(signals=signals, observer=observer, command_line=command_line, execution=execution)
        run = execute(config, recording, context=context, resume=execution.resume, sender=sender)
        show = _print_run if config.watch is None else _print_watch
        show(run, as_json=as_json, throw_away=execution.throw_away)
        run_on_finish(execution.on_finish, run.recorder, exit_code=run.end.exit_code)
    return run.end.exit_code


def _print_run(run: FinishedRun, *, as_json: bool, throw_away: bool) -> None:
    from servetop.cli.report.report import print_end, print_failed_cells, print_run
    from servetop.recordings.library.empty_recordings import never_attached

    summary = final_summary(run)
    with contextlib.closing(run.recorder.reader()) as reader:
        if throw_away or never_attached(reader):
            summary = dataclasses.replace(summary, recording=None)
        search = reader.header.config.search
        if search is not None and search.since is None and summary.requests.num_prompts:
            from servetop.cli.report.search_lines import print_search

            print_search(reader, summary, as_json=as_json)
        elif as_json or summary.requests.num_prompts:
            print_run(reader, summary, as_json=as_json)
        else:
            print_failed_cells(summary)
        print_end(run.end, reader, unrecorded=run.recorder.unrecorded)


def _print_watch(run: FinishedRun, *, as_json: bool, throw_away: bool) -> None:
    from servetop.cli.report.report import print_end
    from servetop.cli.report.watch_report import print_watch
    from servetop.recordings.library.empty_recordings import never_attached

    with contextlib.closing(run.recorder.reader()) as reader:
        if not never_attached(reader):
            print_watch(reader, as_json=as_json, kept=not throw_away)
        elif as_json:
            console.out_json({"error": run.end.reason, "exit_code": run.end.exit_code})
        print_end(run.end, reader, unrecorded=run.recorder.unrecorded)


class HeadlessObserver:
    """Prints the progress and the warnings of a run on stderr."""

    def __init__(self, config: RunConfig, recording: Path) -> None:
        self._config = config
        self._recording = recording
        self._progress: HeadlessProgress | WatchProgress | FleetProgress | None = None

    async def follow(self) -> None:
        """Show the progress until cancelled, and a last time then, while the recording can be read."""
        with contextlib.suppress(
            RecordingError, OSError
        ):  # OSError: the run itself reports files that cannot be opened
            try:
                while True:
                    await asyncio.sleep(POLL_SECONDS)
                    await self._load()
                    self._opened().show()
            finally:
                self._opened().close()

    async def _load(self) -> None:
        """Import the progress of a watch in a thread: that takes a second or more, in which the server is read."""
        if self._progress is None and self._config.watch is not None:
            name = "fleet_progress" if self._config.watch.several else "watch_progress"
            await asyncio.to_thread(importlib.import_module, f"servetop.cli.watch.{name}")

    def alert(self, line: str) -> None:
        """Print a line at once."""
        if self._progress is not None:
            self._progress.print_line(line)
        else:
            console.status(line)

    def _opened(self) -> HeadlessProgress | WatchProgress | FleetProgress:
        if self._progress is None and self._config.watch is not None and self._config.watch.several:
            from servetop.cli.watch.fleet_progress import FleetProgress

            self._progress = FleetProgress(self._recording)
        elif self._progress is None and self._config.watch is not None:
            from servetop.cli.watch.watch_progress import WatchProgress

            self._progress = WatchProgress(self._recording)
        elif self._progress is None:
            from servetop.cli.headless.headless_progress import HeadlessProgress

            self._progress = HeadlessProgress(self._config, self._recording)
        return self._progress
