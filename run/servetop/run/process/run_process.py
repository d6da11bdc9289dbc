"""The process that plays a run: recording open first, then the engine and the load, signals obeyed, file closed.

`python -m servetop.run.process.run_process RECORDING [--resume] [--throw-away]` is the run behind a dashboard: its
configuration comes as a line of JSON on standard input, which its owner keeps open (see `owner_pipe`). What the
recording does not need is loaded after it is open: a dashboard waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from servetop.core.config import RunConfig, from_data
from servetop.core.errors import ExitCode, ServetopError
from servetop.core.text.known_secrets import redactor_of
from servetop.run import console
from servetop.run.process.first_sender import FirstSender
from servetop.run.process.owner_pipe import AWAIT_FRAME, THROW_AWAY, OwnerPipe
from servetop.run.process.resource_limits import check_limits, exhausted_resource, silence_teardown
from servetop.run.process.run_signals import RunSignals

if TYPE_CHECKING:
    from servetop.core.events import RunEnd
    from servetop.recordings.write.recorder import Recorder
    from servetop.recordings.write.resume import RunStart
    from servetop.run.process.run_registry import Registration
    from servetop.run.run_loop import RunLoop


class RunObserver(Protocol):
    """Watches a run from within its process."""

    async def follow(self) -> None:
        """Run beside it until cancelled."""
        ...

    def alert(self, words: str) -> None:
        """Show a line at once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that is over."""

    end: RunEnd
    recorder: Recorder
    """Closed; it can still be read, with what the disk did not take."""
    summary: Mapping[str, Any] | None = None
    """Of a run that came to its end by itself and is all recorded, but for its exit code and error."""


def play(
    config: RunConfig,
    recording: Path,
    *,
    others: RunContext,
    resume: bool = False,
    sender: FirstSender | None = None,
) -> FinishedRun:
    """Play a run into a recording. RecordingError when the file cannot be made, ServetopError where limits are too low.

    `sender` is its first one, if that has been started already.
    """
    check_limits()
    gc.disable()  # until all is loaded
    import uvloop

    with others.at_end:
        recorder, end = uvloop.run(_played(config, recording, resume=resume, others=others, sender=sender))
        from servetop.run.run_verdict import close_recording

        end, summary = close_recording(recorder, end, config)
    return FinishedRun(end=end, recorder=recorder, summary=summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Who takes part in a run besides its loop."""

    signals: RunSignals
    """The caller of `play` handles them, until the summary is printed."""
    owner: OwnerPipe | None = None
    observer: RunObserver | None = None
    at_end: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """What is done once the recording is closed."""


async def _played(
    config: RunConfig, recording: Path, *, resume: bool, others: RunContext, sender: FirstSender | None
) -> tuple[Recorder, RunEnd]:
    """Play the run; what it needs is loaded beside its first sender, or beside the dashboard that waits for it."""
    recorder, start = _opened(config, recording, resume=resume)
    from servetop.run.run_loop import RunLoop

    gc.enable()
    if sender is None and others.owner is not None:
        await others.owner.frame_drawn()
    sender = sender or FirstSender.start()
    others.at_end.callback(sender.end_unused)
    alert = others.observer.alert if others.observer else console.status
    loop = RunLoop(config, recorder, start=start, sender=sender, alert=alert)
    registration = _register(config, recording, loop)
    others.at_end.callback(registration.end)
    return recorder, await _attended(loop, others, registration)


def _opened(config: RunConfig, recording: Path, *, resume: bool) -> tuple[Recorder, RunStart]:
    """The recording, new or to go on with, and where the run starts in it."""
    from servetop.core.clock import ClockAnchor
    from servetop.core.interfaces.run_source import RunHeader
    from servetop.recordings.write.recorder import Recorder
    from servetop.recordings.write.resume import RunStart, resume_recording
    from servetop.run.process.versions import host_facts, versions

    if resume:
        return resume_recording(recording, config)
    anchor = ClockAnchor.take()
    header = RunHeader(config=config, anchor=anchor, versions=versions(), host=host_facts(), pid=os.getpid())
    return Recorder.create(recording, header), RunStart(anchor=anchor)


def _register(config: RunConfig, recording: Path, loop: RunLoop) -> Registration:
    """List the run for `servetop ps`."""
    from servetop.recordings.library.liveness import Writer
    from servetop.run.process.run_registry import RegisteredRun, Registration, RunRegistry

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


async def _attended(loop: RunLoop, others: RunContext, registration: Registration) -> RunEnd:
    """Run it, while signals and its owner can end it and other processes can find it."""
    others.signals.give_to(loop.stop_requests)
    if others.owner is not None:
        others.owner.watch(loop.stop_requests)
    beside = [asyncio.ensure_future(_keep_listed(loop, registration, owner=others.owner))]
    beside += [asyncio.ensure_future(others.observer.follow())] if others.observer else []
    try:
        end = await loop.run()
    finally:
        others.signals.ignore()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)  # the run's own error, if any, is the one that is told
    return end


async def _keep_listed(loop: RunLoop, registration: Registration, *, owner: OwnerPipe | None) -> None:
    from servetop.core.tick import TICK_SECONDS

    while True:
        detached = owner is not None and not owner.waits
        registration.update(state=loop.phase, detached=detached, trouble=loop.trouble)
        await asyncio.sleep(TICK_SECONDS)


def main(argv: Sequence[str]) -> int:
    """Play the run of the process that started this one; nothing is printed but why it cannot be."""
    name, *flags = argv
    recording, owner = Path(name), OwnerPipe(sys.stdin.fileno())
    config = RunConfig()
    sender = None
    try:
        sender = None if AWAIT_FRAME in flags else FirstSender.start()
        config = from_data(RunConfig, owner.read_config())
        with RunSignals().caught() as signals:
            others = RunContext(signals=signals, owner=owner)
            run = play(config, recording, others=others, resume="--resume" in flags, sender=sender)
        if run.recorder.unrecorded is not None:  # otherwise the recording says how it ended
            console.message(run.end.reason)
        return run.end.exit_code
    except ServetopError as error:
        console.message(redactor_of(config).sentence(str(error)))
        return int(error.exit_code)
    except Exception as error:
        if not (words := exhausted_resource(error)):
            raise
        silence_teardown()
        console.message(words)
        return int(ExitCode.RUN_FAILED)
    finally:
        if sender is not None:
            sender.end_unused()
        if THROW_AWAY in flags and not owner.waits:
            shutil.rmtree(recording.parent, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
