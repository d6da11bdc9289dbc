"""The process that plays a run: recording open first, then the engine and the load, signals obeyed, file closed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from servetop.cli.run_loop import RunLoop
from servetop.cli.versions import host_facts, versions
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig, from_data
from servetop.core.errors import ExitCode
from servetop.core.events import RunEnd
from servetop.core.source import RunHeader
from servetop.recordings.reader import RecordingReader
from servetop.recordings.recorder import Recorder
from servetop.recordings.resuming import RunStart, resume_recording
from servetop.recordings.summary import run_summary
from servetop.recordings.thresholds import check_thresholds

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_from_stdin(recording: Path, *, resume: bool) -> int:
    """The run process behind a dashboard: configuration in as JSON, recording out, nothing printed."""
    return play(from_data(RunConfig, json.load(sys.stdin)), recording, resume=resume).exit_code


def play(
    config: RunConfig, recording: Path, *, resume: bool = False, watch: Callable[[], Awaitable[None]] | None = None
) -> RunEnd:
    """Play a run into a recording; `watch` runs beside it. RecordingError when the file cannot be made."""
    recorder, start = resume_recording(recording) if resume else _new_recording(config, recording)
    loop = RunLoop(config, recorder, start=start)
    end = _judged(uvloop.run(_with_signals(loop, watch)), config, recording)
    recorder.close(end)
    return end


def _new_recording(config: RunConfig, recording: Path) -> tuple[Recorder, RunStart]:
    anchor = ClockAnchor.take()
    header = RunHeader(config=config, anchor=anchor, versions=versions(), host=host_facts(), pid=os.getpid())
    return Recorder.create(recording, header), RunStart(anchor=anchor)


async def _with_signals(loop: RunLoop, watch: Callable[[], Awaitable[None]] | None) -> RunEnd:
    events = asyncio.get_running_loop()
    for number in SIGNALS:
        events.add_signal_handler(number, loop.interrupt)
    watching = asyncio.ensure_future(watch()) if watch else None
    end = await loop.run()
    if watching:
        watching.cancel()
        await asyncio.wait({watching})
    return end


def _judged(end: RunEnd, config: RunConfig, recording: Path) -> RunEnd:
    """A run that went well can still miss its thresholds, or have been limited by the client."""
    if end.exit_code != ExitCode.OK:
        return end
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
