"""A run without a dashboard: progress on stderr while it runs, the summary on stdout at its end.

What a run does not need before its first request is loaded after it: progress, summary and tables.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.config import RunConfig
from servetop.core.errors import RecordingError
from servetop.run import console
from servetop.run.process.run_process import FinishedRun, RunContext, execute
from servetop.run.process.run_signals import RunSignals

if TYPE_CHECKING:
    from servetop.cli.headless.headless_progress import HeadlessProgress
    from servetop.run.process.first_sender import FirstSender

POLL_SECONDS = 0.5


def run_headless(
    config: RunConfig,
    recording: Path,
    *,
    as_json: bool,
    resume: bool = False,
    throw_away: bool = False,
    sender: FirstSender | None = None,
) -> int:
    """Play the run here and print what came of it; the exit code. A recording to throw away is not named.

    Signals that come when the run is over end nothing: the summary is printed, and the exit code is the recording's.
    """
    with RunSignals().caught() as signals:
        context = RunContext(signals=signals, observer=HeadlessObserver(config, recording))
        run = execute(config, recording, context=context, resume=resume, sender=sender)
        _print_run(run, as_json=as_json, throw_away=throw_away)
    return run.end.exit_code


def _print_run(run: FinishedRun, *, as_json: bool, throw_away: bool) -> None:
    from servetop.cli.report.report import print_end, print_summary
    from servetop.recordings.summary.summary import run_summary

    unrecorded = run.recorder.unrecorded
    with contextlib.closing(run.recorder.reader()) as reader:
        summary = dict(run.summary or run_summary(reader)) | {"exit_code": run.end.exit_code}
        if throw_away:
            summary["recording"] = None
        summary["error"] = run.end.reason if run.end.exit_code else None  # also where the disk refused the end
        if unrecorded is not None:
            summary |= {"recording_state": "incomplete", "not_recorded": dataclasses.asdict(unrecorded)}
        if as_json or summary["num_prompts"]:
            print_summary(summary, as_json=as_json)
        print_end(run.end, reader, unrecorded=unrecorded)


class HeadlessObserver:
    """Says on stderr how far a run is, and what happens to it."""

    def __init__(self, config: RunConfig, recording: Path) -> None:
        self._config = config
        self._recording = recording
        self._progress: HeadlessProgress | None = None

    async def follow(self) -> None:
        """Show the run's progress until cancelled, and once more then; as long as its recording can be read."""
        with contextlib.suppress(RecordingError, OSError):  # OSError: files that cannot be opened are told by the run
            try:
                while True:
                    await asyncio.sleep(POLL_SECONDS)
                    self._opened().show()
            finally:
                self._opened().close()

    def alert(self, line: str) -> None:
        """Print a line at once."""
        if self._progress is not None:
            self._progress.say(line)
        else:
            console.status(line)

    def _opened(self) -> HeadlessProgress:
        from servetop.cli.headless.headless_progress import HeadlessProgress

        if self._progress is None:
            self._progress = HeadlessProgress(self._config, self._recording)
        return self._progress
