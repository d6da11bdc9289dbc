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

    signals = RunSignals()
    with signals.caught():
        recorder, end = uvloop.run(_played(config, recording, signals, resume=resume, watch=watch, owner=owner))
        end = _judged(end, config, recording)
        recorder.close(end, steady=_steady(recording))
    return end


async def _played(
    config: RunConfig,
    recording: Path,
    signals: RunSignals,
    *,
    resume: bool,
    watch: Callable[[], Awaitable[None]] | None,
    owner: OwnerPipe | None,
) -> tuple[Recorder, RunEnd]:
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
    return recorder, await _attended(loop, signals, owner=owner, watch=watch)


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


async def _attended(
    loop: RunLoop, signals: RunSignals, *, owner: OwnerPipe | None, watch: Callable[[], Awaitable[None]] | None
) -> RunEnd:
    """Run it, while signals and its owner can end it."""
    signals.give_to(loop.stop_requests)
    if owner is not None:
        owner.watch(loop.stop_requests)
    watching = asyncio.ensure_future(watch()) if watch else None
    end = await loop.run()
    signals.ignore()
    if watching:
        watching.cancel()
        await asyncio.wait({watching})
    return end


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
