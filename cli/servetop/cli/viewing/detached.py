"""`--detach`: starts a run without an owner, and prints how to find it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
from pathlib import Path

from servetop.core.clock import MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode, RecordingError
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.process.execution import Execution
from servetop.run.process.owned_run import OwnedRun
from servetop.run.process.registered_run import RegisteredRun
from servetop.run.process.run_registry import RegistryError, RunRegistry

REGISTERED_WITHIN = 5.0
"""Seconds from the start of a recording within which its run is registered, unless that fails."""
CHECK_SECONDS = 0.02


def start_detached(config: RunConfig, recording: Path, *, execution: Execution, as_json: bool) -> int:
    """Starts the run and releases it once it records; failures before that are failures of this command."""
    with tempfile.TemporaryFile("w+") as stderr:
        run = OwnedRun.start(config, recording, stderr=stderr, execution=execution)
        asyncio.run(run.opened()).close()
        run.release()
    listed = asyncio.run(find_registered(run))
    if as_json:
        found = None if listed is None else dataclasses.asdict(listed)
        console.out_json(found or {"id": None, "pid": run.pid, "recording": recording.absolute()}, default=str)
    else:
        console.out(*finding_hints(listed, recording))
    return int(ExitCode.OK)


async def find_registered(run: OwnedRun) -> RegisteredRun | None:
    """Return the run in the registry; None if it has ended or the registry cannot be read or written."""
    clock = MonotonicClock()
    while clock.now() < REGISTERED_WITHIN and not run.ended:
        try:
            listed = RunRegistry().of_process(run.pid)
        except RegistryError:
            return None
        if listed is not None:
            return listed
        await clock.sleep_until(clock.now() + CHECK_SECONDS)
    return None


def finding_hints(run: RegisteredRun | None, recording: Path) -> tuple[str, ...]:
    """Return the lines that state how to find a run that continues without this process."""
    if run is None:
        return (f"The run continues. Watch it: servetop replay {recording}",)
    return (*finding_hint(run), f"recording  {recording}")


def finding_hint(run: RegisteredRun) -> tuple[str, ...]:
    """Return the line that states how to watch and stop a live run."""
    if is_watch(run.recording):
        return (f"Watch {run.id} continues. Show it: servetop attach {run.id} · stop it: servetop stop {run.id}",)
    return (f"Run {run.id} continues. Watch it: servetop attach {run.id} · stop it: servetop stop {run.id}",)


def is_watch(recording: Path) -> bool:
    """Whether a recording is of a watch; False if it cannot be read."""
    try:
        with contextlib.closing(RecordingReader.open(recording)) as reader:
            return reader.header.config.watch is not None
    except (RecordingError, OSError):
        return False
