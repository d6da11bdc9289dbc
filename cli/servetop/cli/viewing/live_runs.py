"""`servetop ps`, `stop` and `attach`: the runs of this user that go on, wherever they were started."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal

from servetop.cli.options.output_options import DisplayOptions
from servetop.core.clock import MonotonicClock, wall_clock
from servetop.core.errors import ExitCode, RecordingError, ServetopError
from servetop.core.events import Action
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.process.run_registry import RegisteredRun, RunRegistry

LOOK_EVERY = 0.1
"""Seconds between two looks whether a run has ended."""


def print_runs(*, as_json: bool) -> int:
    """All runs that go on, newest first; OK also when there are none."""
    now = wall_clock()
    runs = RunRegistry().runs()
    if as_json:
        console.out_json([{**dataclasses.asdict(run), "age": now - run.began} for run in runs], default=str)
    elif not runs:
        console.out("no run goes on")
    else:
        _print_table(runs, now)
    return int(ExitCode.OK)


def _print_table(runs: list[RegisteredRun], now: float) -> None:
    from servetop.cli.tables import cell, light_table, out_tables
    from servetop.tui.drawing.formats import minutes

    table = light_table("id", "engine", "age", "state", "recording")
    for column in (1, 3, 4):
        table.columns[column].justify = "left"
    table.columns[4].no_wrap, table.columns[4].overflow = False, "fold"
    for run in runs:
        state = f"{run.state}{', detached' if run.detached else ''}{', not recorded now' if run.trouble else ''}"
        table.add_row(cell(run.id), cell(run.engine), minutes(now - run.began), cell(state), cell(run.recording))
    out_tables(table)


def stop_run(name: str, *, now: bool, timeout: float) -> int:
    """Ask a run to drain, or to cancel, and wait until its process has ended; OK when it has."""
    run = RunRegistry().find(name)
    console.message(f"{'cancelling' if now else 'draining'} {run.id} (Ctrl-C stops waiting, not the run)")
    _ask_to_end(run, now=now)
    if not asyncio.run(_has_ended(run, within=timeout)):
        advice = f"look at it with servetop attach {run.id}" if now else f"cancel it with servetop stop {run.id} --now"
        raise ServetopError(f"{run.id} goes on after {timeout:g} s: wait longer with --timeout, or {advice}")
    console.out(f"{run.id} {_how_it_ended(run)}", f"recording  {run.recording}")
    return int(ExitCode.OK)


def _ask_to_end(run: RegisteredRun, *, now: bool) -> None:
    """Through its recording, as a dashboard does, so that it says who asked; by a signal where that cannot be."""
    if now:
        _send_signal(run, signal.SIGINT)
        return
    try:
        with contextlib.closing(RecordingReader.open(run.recording)) as reader:
            reader.send(Action.STOP, source="servetop stop")
    except RecordingError:
        _send_signal(run, signal.SIGTERM)


def _send_signal(run: RegisteredRun, number: signal.Signals) -> None:
    """To this very process: it is looked at once more when nobody else can get its number any more."""
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
        await clock.sleep_until(clock.now() + LOOK_EVERY)
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
    """The dashboard on a run that goes on; leaving it ends nothing."""
    from servetop.cli.viewing.dashboard import replay_recording

    run = RunRegistry().find(name)
    code = replay_recording(str(run.recording), display)
    if run.process.is_alive():
        console.out(*where_to_find(run))
    return code


def where_to_find(run: RegisteredRun) -> tuple[str, ...]:
    """How a run that goes on is watched and stopped."""
    return (f"Run {run.id} goes on. Watch it: servetop attach {run.id} · stop it: servetop stop {run.id}",)
