"""`--detach`: start a run that nobody owns, and say how it is found again."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from pathlib import Path

from servetop.cli.viewing.live_runs import where_to_find
from servetop.core.clock import MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode
from servetop.run import console
from servetop.run.process.owned_run import OwnedRun
from servetop.run.process.run_registry import RegisteredRun, RegistryError, RunRegistry

LISTED_WITHIN = 5.0
"""Seconds from the beginning of a recording within which its run is listed, unless it cannot be."""
LOOK_AGAIN = 0.02


def start_detached(config: RunConfig, recording: Path, *, resume: bool, as_json: bool) -> int:
    """Start the run and let it go once it records; what goes wrong before is this command's failure."""
    with tempfile.TemporaryFile("w+") as stderr:
        run = OwnedRun.start(config, recording, stderr=stderr, resume=resume)
        asyncio.run(run.opened()).close()
        run.release()
    listed = asyncio.run(find_registered(run))
    if as_json:
        found = None if listed is None else dataclasses.asdict(listed)
        console.out_json(found or {"id": None, "pid": run.pid, "recording": recording.absolute()}, default=str)
    else:
        console.out(*found_again(listed, recording))
    return int(ExitCode.OK)


async def find_registered(run: OwnedRun) -> RegisteredRun | None:
    """The run in the registry; None when it has ended, and when the registry cannot be written or read."""
    clock = MonotonicClock()
    while clock.now() < LISTED_WITHIN and not run.ended:
        try:
            listed = RunRegistry().of_process(run.pid)
        except RegistryError:
            return None
        if listed is not None:
            return listed
        await clock.sleep_until(clock.now() + LOOK_AGAIN)
    return None


def found_again(run: RegisteredRun | None, recording: Path) -> tuple[str, ...]:
    """Where a run is found that goes on without this process."""
    if run is None:
        return (f"The run goes on. Watch it: servetop replay {recording}",)
    return (*where_to_find(run), f"recording  {recording}")
