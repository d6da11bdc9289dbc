"""The process that plays a run: recording open first, then the engine and the load, signals obeyed, file closed.

`python -m servetop.cli.run_process RECORDING [--resume] [--throw-away]` is the run behind a dashboard: its
configuration comes as a line of JSON on standard input, which its owner keeps open (see `owner_pipe`). What the
recording does not need is loaded after it is open: a dashboard waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.cli import console
from servetop.cli.owner_pipe import THROW_AWAY, OwnerPipe
from servetop.cli.run_signals import RunSignals
from servetop.core.config import RunConfig, from_data
from servetop.core.errors import ExitCode, RecordingError, ServetopError
from servetop.core.known_secrets import redactor_of

if TYPE_CHECKING:
    from servetop.cli.run_loop import RunLoop
    from servetop.cli.run_registry import Registration
    from servetop.core.events import RunEnd
    from servetop.core.steady import SteadyWindow
    from servetop.recordings.recorder import Recorder
    from servetop.recordings.resuming import RunStart


def play(
    config: RunConfig,
    recording: Path,
    *,
    resume: bool = False,
    watch: Callable[[], Awaitable[None]] | None = None,
    owner: OwnerPipe | None = None,
) -> RunEnd:
    """Play a run into a recording; `watch` runs beside it. RecordingError when the file cannot be made."""
    import uvloop

    with RunSignals().caught() as signals, contextlib.ExitStack() as at_end:
        others = Others(signals=signals, owner=owner, watch=watch, at_end=at_end)
        recorder, end = uvloop.run(_played(config, recording, resume=resume, others=others))
        end = _judged(end, config, recording)
        recorder.close(end, steady=_steady(recording))
    return end


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Who takes part in a run besides its loop."""

    signals: RunSignals
    owner: OwnerPipe | None
    watch: Callable[[], Awaitable[None]] | None
    at_end: contextlib.ExitStack
    """What is done once the recording is closed."""


async def _played(config: RunConfig, recording: Path, *, resume: bool, others: Others) -> tuple[Recorder, RunEnd]:
    """Play the run; what it needs is loaded once its first sender has been started, which loads beside it."""
    from servetop.cli.first_sender import FirstSender

    sender = await FirstSender.start()
    try:
        recorder, start = _opened(config, recording, resume=resume)
    except ServetopError:
        await sender.end_unused()
        raise
    from servetop.cli.run_loop import RunLoop

    loop = RunLoop(config, recorder, start=start, sender=sender)
    registration = _register(config, recording, loop)
    others.at_end.callback(registration.end)
    return recorder, await _attended(loop, others, registration)


def _opened(config: RunConfig, recording: Path, *, resume: bool) -> tuple[Recorder, RunStart]:
    """The recording, new or to go on with, and where the run starts in it."""
    from servetop.cli.versions import host_facts, versions
    from servetop.core.clock import ClockAnchor
    from servetop.core.source import RunHeader
    from servetop.recordings.recorder import Recorder
    from servetop.recordings.resuming import RunStart, resume_recording

    if resume:
        return resume_recording(recording, config)
    anchor = ClockAnchor.take()
    header = RunHeader(config=config, anchor=anchor, versions=versions(), host=host_facts(), pid=os.getpid())
    return Recorder.create(recording, header), RunStart(anchor=anchor)


def _register(config: RunConfig, recording: Path, loop: RunLoop) -> Registration:
    """List the run for `servetop ps`."""
    from servetop.cli.run_registry import RegisteredRun, Registration, RunRegistry
    from servetop.recordings.liveness import Writer

    registry, process = RunRegistry(), Writer.this_process()
    run = RegisteredRun(
        id=registry.new_id(),
        pid=process.pid,
        began=process.started,
        host=process.host,
        engine=config.engine.name,
        model=config.engine.model,
        label=config.label,
        recording=recording.absolute(),
        state="",
    )
    registration = Registration(registry, run, warn=lambda words: loop.warn("ps", text=words))
    registration.update(state=loop.phase, detached=False)
    return registration


async def _attended(loop: RunLoop, others: Others, registration: Registration) -> RunEnd:
    """Run it, while signals and its owner can end it and other processes can find it."""
    others.signals.give_to(loop.stop_requests)
    if others.owner is not None:
        others.owner.watch(loop.stop_requests)
    beside = [asyncio.ensure_future(_keep_listed(loop, registration, owner=others.owner))]
    beside += [asyncio.ensure_future(others.watch())] if others.watch else []
    end = await loop.run()
    others.signals.ignore()
    for task in beside:
        task.cancel()
    await asyncio.wait(beside)
    return end


async def _keep_listed(loop: RunLoop, registration: Registration, *, owner: OwnerPipe | None) -> None:
    from servetop.core.tick import TICK_SECONDS

    while True:
        registration.update(state=loop.phase, detached=owner is not None and not owner.waits)
        await asyncio.sleep(TICK_SECONDS)


def _steady(recording: Path) -> Mapping[int, SteadyWindow] | None:
    """Each stage's steady window, to be stored; None when the recording cannot be read."""
    from servetop.recordings.reader import RecordingReader
    from servetop.recordings.run_data import RunData
    from servetop.recordings.steady import steady_windows

    try:
        with contextlib.closing(RecordingReader.open(recording)) as reader:
            return steady_windows(RunData.load(reader))
    except RecordingError:
        return None


def _judged(end: RunEnd, config: RunConfig, recording: Path) -> RunEnd:
    """A run that went well can still miss its thresholds, or have been limited by the client."""
    if end.exit_code != ExitCode.OK:
        return end
    from servetop.core.events import RunEnd
    from servetop.recordings.reader import RecordingReader
    from servetop.recordings.summary import run_summary
    from servetop.recordings.thresholds import check_thresholds

    reader = RecordingReader.open(recording)
    try:
        summary = run_summary(reader)
    finally:
        reader.close()
    unmet = check_thresholds(summary, config.thresholds)
    if summary["trust"]["verdict"] == "client-bound":
        unmet.append("the client was the bottleneck: " + ", ".join(summary["trust"]["reasons"]))
    if not unmet:
        return end
    return RunEnd(at=end.at, exit_code=int(ExitCode.THRESHOLDS), reason="; ".join(unmet))


def main(argv: Sequence[str]) -> int:
    """Play the run of the process that started this one; nothing is printed but why it cannot be."""
    name, *flags = argv
    recording, owner = Path(name), OwnerPipe(sys.stdin.fileno())
    config = RunConfig()
    try:
        config = from_data(RunConfig, owner.read_config())
        return play(config, recording, resume="--resume" in flags, owner=owner).exit_code
    except ServetopError as error:
        console.message(redactor_of(config).sentence(str(error)))
        return int(error.exit_code)
    finally:
        if THROW_AWAY in flags and not owner.waits:
            shutil.rmtree(recording.parent, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
