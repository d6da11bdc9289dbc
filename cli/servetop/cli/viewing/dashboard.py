"""Opens the dashboard on a run in another process, or on a recording."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from servetop.cli.options.output_options import DisplayOptions
from servetop.cli.viewing.baseline_file import with_baseline_path
from servetop.cli.viewing.display_options import check_theme, dashboard_options, end_with_terminal
from servetop.cli.viewing.viewer_signals import PAGE_SERVER, ViewerSignals
from servetop.core.clock import MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode, UsageError
from servetop.core.events import Note
from servetop.run import console
from servetop.run.process.execution import Execution
from servetop.run.process.finish_command import ON_FINISH
from servetop.run.process.owned_run import OwnedRun, stderr_file
from servetop.run.process.recording_trouble import RecordingTrouble, alert_note


def replay_recording(name: str | None, display: DisplayOptions, *, read_only: bool = False) -> int:
    """Shows a finished or growing recording; without a name, the newest, under the list of all recordings."""
    end_with_terminal()
    gc.disable()  # until everything is loaded: saves a tenth of the time to the first frame
    from servetop.cli.viewing.read_only import ReadOnlyStore
    from servetop.recordings.library.catalog import resolve
    from servetop.recordings.library.folder_store import FolderStore
    from servetop.tui.app import run_dashboard

    store = FolderStore()
    shown = ReadOnlyStore(store) if read_only else store
    signals = ViewerSignals()
    exit_requested = _exit_condition(signals)
    first = store.newest() if name is None else resolve(name)
    try:
        if not console.is_terminal() and PAGE_SERVER not in os.environ:
            raise UsageError("the dashboard needs a terminal: print a recording with servetop summary, or add --web")
        source = shown.open(first)
        options = dashboard_options(
            with_baseline_path(display),
            shown,
            browse=name is None,
            exit_requested=exit_requested,
            read_only=read_only,
            unrecorded_notes=RecordingTrouble(source.header) if source.is_live() else None,
        )
        with signals.caught():
            run_dashboard(source, options=replace(options, recording=first))
    finally:
        store.close()
    return int(ExitCode.INTERRUPTED if signals.exit_requested() else ExitCode.OK)


def _exit_condition(signals: ViewerSignals) -> Callable[[], str]:
    """Return the condition that ends a viewer: a signal, or, behind a page, the end of its web server."""
    named = os.environ.get(PAGE_SERVER, "")
    server = int(named) if named.isdecimal() else None

    def reason() -> str:
        return signals.exit_requested() or ("abandoned" if server is not None and os.getppid() != server else "")

    return reason


def run_with_dashboard(config: RunConfig, recording: Path, *, display: DisplayOptions, execution: Execution) -> int:
    """Starts the run process, shows its recording as it grows, and returns the run's exit code.

    The run process starts before anything heavy is loaded here, so that both load at the same time. Its engine and
    senders start after the first frame, which they would delay.
    """
    gc.disable()  # until everything is loaded
    check_theme(display.theme)
    display = with_baseline_path(display)
    with stderr_file() as stderr:
        run = OwnedRun.start(config, recording, stderr=stderr, execution=execution, await_frame=True)
        signals = ViewerSignals(run.signal)
        end_with_terminal(run.end_with_terminal)
        with signals.caught():
            left = _show(run, display, signals)
            if left == "detach" and not run.ended:
                from servetop.cli.viewing.detached import find_registered, finding_hints

                run.release()
                console.out(*finding_hints(asyncio.run(find_registered(run)), recording))
                return int(ExitCode.OK)
            if left in _BY_SIGNAL and not run.ended:
                run.signal(_BY_SIGNAL[left])
            if not run.ended:
                console.message(_wait_message(left, watched=config.watch is not None))
            return conclude(run, throw_away=execution.throw_away)


_WAIT_MESSAGES = {
    "stop": "finishing the run (Ctrl-C cancels the requests in flight)",
    "terminated": "finishing the run (a second SIGTERM cancels the requests in flight)",
    "stop by signal": "finishing the run (Ctrl-C cancels the requests in flight)",
    "cancel": "stopping the run",
    "cancel by signal": "stopping the run",
    "interrupted": "stopping the run",
    "": "the dashboard failed, the run continues (Ctrl-C cancels it)",
}
"""The message printed while waiting for a run, by the dashboard's result."""


def _wait_message(left: str, *, watched: bool) -> str:
    if watched and left:
        return "ending the watch"
    return _WAIT_MESSAGES.get(left, _WAIT_MESSAGES[""])


_BY_SIGNAL = {"stop by signal": signal.SIGTERM, "cancel by signal": signal.SIGINT}
"""The signal for a run whose recording accepts no command."""


def _show(run: OwnedRun, display: DisplayOptions, signals: ViewerSignals) -> str:
    """Shows the dashboard; returns its result."""
    from servetop.recordings.library.folder_store import FolderStore
    from servetop.tui.app import run_dashboard

    reader = asyncio.run(run.opened())
    store = FolderStore()
    clock = MonotonicClock(reader.header.anchor.origin_ns)

    def unrecorded() -> list[Note]:
        notes = [alert_note(line, at=clock.now()) for line in run.new_stderr_lines()]
        return [note for note in notes if note is not None]

    options = dashboard_options(display, store, exit_requested=signals.exit_requested, unrecorded_notes=unrecorded)
    try:
        return signals.exit_requested() or run_dashboard(
            reader, owns_run=True, options=replace(options, on_first_frame=run.shown, recording=run.recording)
        )
    finally:
        store.close()
        reader.close()


def conclude(run: OwnedRun, *, throw_away: bool) -> int:
    """Waits for the end of the run, prints its summary or the reason of its failure, and returns its exit code."""
    from servetop.cli.report.report import print_recorded_end, print_recording
    from servetop.recordings.library.empty_recordings import is_empty

    try:
        code = run.wait()
    finally:
        if not is_empty(run.recording):
            print_recording(str(run.recording), as_json=False, kept=not throw_away)
    if code and not print_recorded_end(run.recording):
        console.message(run.last_stderr_line())
    for line in run.lines_about(ON_FINISH):
        console.message(line)
    return code
