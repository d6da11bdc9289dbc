"""`servetop ps`, `stop` and `attach`: the live runs of this user, wherever they were started."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
from typing import TYPE_CHECKING

from servetop.cli.options.output_options import DisplayOptions
from servetop.cli.viewing.detached import finding_hint, is_watch
from servetop.core.clock import MonotonicClock, wall_clock
from servetop.core.errors import ExitCode, RecordingError, ServetopError
from servetop.core.events import Action
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.process.registered_run import RegisteredRun
from servetop.run.process.run_registry import RunRegistry

if TYPE_CHECKING:
    from rich.table import Table

CHECK_SECONDS = 0.1
"""Seconds between two checks whether a run has ended."""


def print_runs(*, as_json: bool) -> int:
    """Prints all active runs, newest first; OK even if there are none."""
    now = wall_clock()
    runs = RunRegistry().runs()
    if as_json:
        console.out_json([{**dataclasses.asdict(run), "age": now - run.began} for run in runs], default=str)
    elif not runs:
        console.out("no active runs")
    else:
        from servetop.cli.tables import out_first_that_fits

        # names only where whole paths would be cut
        out_first_that_fits(*(_table(runs, now, whole_paths=whole) for whole in (True, False)))
    return int(ExitCode.OK)


def _table(runs: list[RegisteredRun], now: float, *, whole_paths: bool) -> Table:
    from servetop.core.text.formats import clock
    from servetop.reports.tables import cell, light_table

    table = light_table("id", "engine", "age", "state", "recording")
    for column in (1, 3, 4):
        table.columns[column].justify = "left"
    for run in runs:
        state = f"{run.state}{', detached' if run.detached else ''}{', not recorded now' if run.trouble else ''}"
        recording = run.recording if whole_paths else run.recording.stem
        table.add_row(cell(run.id), cell(run.engine), clock(now - run.began), cell(state), cell(recording))
    return table


def stop_run(name: str, *, now: bool, timeout: float) -> int:
    """Drains or cancels a run, and waits until its process has ended; OK if it has."""
    run = RunRegistry().find(name)
    watched = is_watch(run.recording)
    what = "ending" if watched else "cancelling" if now else "draining"
    console.message(f"{what} {run.id} (Ctrl-C stops waiting, not the {'watch' if watched else 'run'})")
    _request_end(run, now=now)
    if not asyncio.run(_has_ended(run, within=timeout)):
        advice = f"watch it with servetop attach {run.id}" if now else f"cancel it with servetop stop {run.id} --now"
        raise ServetopError(f"{run.id} is still running after {timeout:g} s: wait longer with --timeout, or {advice}")
    console.out(f"{run.id} {_how_it_ended(run)}", f"recording  {run.recording}")
    return int(ExitCode.OK)


def _request_end(run: RegisteredRun, *, now: bool) -> None:
    """Sends the command through the recording, as a dashboard does, which records its source; else by a signal."""
    if now:
        _send_signal(run, signal.SIGINT)
        return
    try:
        with contextlib.closing(RecordingReader.open(run.recording)) as reader:
            reader.send(Action.STOP, source="servetop stop")
    except RecordingError:
        _send_signal(run, signal.SIGTERM)


def _send_signal(run: RegisteredRun, number: signal.Signals) -> None:
    """Signals exactly this process: checks it again once its pid can no longer be recycled."""
    with contextlib.suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open"):
            if run.process.is_alive():
                os.kill(run.pid, number)
            return
        process = os.pidfd_open(run.pid)
        try:
            if run.process.is_alive():
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)


async def _has_ended(run: RegisteredRun, *, within: float) -> bool:
    clock = MonotonicClock()
    while run.process.is_alive():
        if clock.now() >= within:
            return False
        await clock.sleep_until(clock.now() + CHECK_SECONDS)
    return True


def _how_it_ended(run: RegisteredRun) -> str:
    try:
        with contextlib.closing(RecordingReader.open(run.recording)) as reader:
            end = reader.end
    except RecordingError:
        return "has ended; its recording was not kept"
    if end is None:
        return "was killed: its recording ends with its last tick"
    return f"has ended{f': {end.reason}' if end.reason else ''} (exit code {end.exit_code})"


def attach_run(name: str, display: DisplayOptions) -> int:
    """Shows the dashboard on a live run; closing it does not end the run."""
    from servetop.cli.viewing.dashboard import replay_recording

    run = RunRegistry().find(name)
    code = replay_recording(str(run.recording), display)
    if run.process.is_alive():
        console.out(*finding_hint(run))
    return code
