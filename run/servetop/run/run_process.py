"""Executes a run in this process: opens its recording, starts engine and load, handles signals, closes the file.

`python -m servetop.run.run_process RECORDING [--resume] [--throw-away]` is the run behind a dashboard: its
configuration and command line are a line of JSON on standard input, which its owner keeps open (see `owner_pipe`).
Modules that the recording does not need are imported after it is open, because the dashboard waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from servetop.core.config import RunConfig, from_data
from servetop.core.errors import ExitCode, ServetopError
from servetop.core.text.known_secrets import redactor_of
from servetop.run import console
from servetop.run.process.execution import Execution
from servetop.run.process.finish_command import run_on_finish
from servetop.run.process.first_sender import FirstSender
from servetop.run.process.owner_pipe import AWAIT_FRAME, THROW_AWAY, OwnerPipe
from servetop.run.process.resource_limits import check_limits, exhausted_resource, silence_teardown
from servetop.run.process.run_signals import RunSignals

if TYPE_CHECKING:
    from servetop.analysis.summary.summary_types import RunSummary
    from servetop.core.events import RunEnd
    from servetop.recordings.write.recorder import Recorder
    from servetop.recordings.write.resume import RunStart
    from servetop.run.exporter.serve_metrics import MetricsFollower
    from servetop.run.loop.run_loop import RunLoop
    from servetop.run.manifest.manifest_recorder import ManifestRecorder
    from servetop.run.process.run_registry import Registration
    from servetop.run.watch.watch_loop import WatchLoop

_OBJECTS_OF_A_COLLECTION = 20_000
"""New objects after which a watch collects cycles; Python's own threshold is 700."""


class RunObserver(Protocol):
    """Observes a run from within its process."""

    async def follow(self) -> None:
        """Run in parallel with it until cancelled."""
        ...

    def alert(self, line: str) -> None:
        """Show a line at once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that has ended."""

    end: RunEnd
    recorder: Recorder
    """Closed; its reader also has data that could not be written to disk."""
    summary: RunSummary | None = None
    """The summary, without exit code and error, of a run that ended by itself and is completely recorded."""


def execute(
    config: RunConfig,
    recording: Path,
    *,
    context: RunContext,
    resume: bool = False,
    sender: FirstSender | None = None,
) -> FinishedRun:
    """Run a load and record it. RecordingError if the file cannot be created, ServetopError if limits are too low.

    `sender` is the first sender process, if it has been started already.
    """
    check_limits()
    gc.disable()  # until all modules are imported
    import uvloop

    with context.at_end:
        recorder, end = uvloop.run(_run_loop(config, recording, resume=resume, context=context, sender=sender))
        from servetop.run.exit_code import close_recording

        end, summary = close_recording(recorder, end, config)
    return FinishedRun(end=end, recorder=recorder, summary=summary)


def final_summary(run: FinishedRun) -> RunSummary:
    """Return the summary of a run that has ended, with its exit code, error and the data that could not be recorded."""
    from servetop.reports.summary.summary import run_summary

    unrecorded, summary = run.recorder.unrecorded, run.summary
    if summary is None:
        with contextlib.closing(run.recorder.reader()) as reader:
            summary = run_summary(reader)
    return replace(
        summary,
        exit_code=run.end.exit_code,
        error=run.end.reason if run.end.exit_code else None,  # also if the end could not be recorded
        recording_state=summary.recording_state if unrecorded is None else "incomplete",
        not_recorded=unrecorded,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a run works with besides its loop."""

    signals: RunSignals
    """Signals that the caller of `execute` handles, until the summary is printed."""
    owner: OwnerPipe | None = None
    observer: RunObserver | None = None
    command_line: Sequence[str] = ()
    """The command line of servetop; empty for a run started from Python."""
    execution: Execution = Execution()
    at_end: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """Callbacks that run once the recording is closed."""


async def _run_loop(
    config: RunConfig, recording: Path, *, resume: bool, context: RunContext, sender: FirstSender | None
) -> tuple[Recorder, RunEnd]:
    """Run the loop; its modules are imported while the first sender or the dashboard starts."""
    recorder, start = _open_recording(config, recording, resume=resume, command_line=context.command_line)
    loop = await _new_loop(config, recorder, start=start, context=context, sender=sender)
    from servetop.run.manifest.manifest_recorder import ManifestRecorder

    registration = _register(config, recording, loop)
    context.at_end.callback(registration.end)
    manifest = ManifestRecorder(config, recorder, engine=loop.first_launched, command_line=context.command_line)
    metrics = _metrics_followers(config, recording, start, loop=loop, context=context)
    return recorder, await _run_with_observers(loop, context, registration, manifest, metrics=metrics)


async def _new_loop(
    config: RunConfig, recorder: Recorder, *, start: RunStart, context: RunContext, sender: FirstSender | None
) -> RunLoop | WatchLoop:
    """Return the loop of a run, with its first sender process, or that of a watch, which has none."""
    alert = context.observer.alert if context.observer else console.status
    if config.watch is not None:
        from servetop.run.watch.watch_loop import WatchLoop
    else:
        from servetop.run.loop.run_loop import RunLoop
    gc.enable()
    if sender is None and context.owner is not None:
        await context.owner.frame_drawn()
    if config.watch is not None:
        if sender is not None:  # it was started before the configuration was known
            sender.end_unused()
        gc.freeze()  # what is loaded stays; a watch makes few cycles, and collecting them takes time
        gc.set_threshold(_OBJECTS_OF_A_COLLECTION)
        return WatchLoop(config, recorder, start=start, alert=alert)
    sender = sender or FirstSender.start()
    context.at_end.callback(sender.end_unused)
    return RunLoop(config, recorder, start=start, sender=sender, alert=alert)


def _open_recording(
    config: RunConfig, recording: Path, *, resume: bool, command_line: Sequence[str]
) -> tuple[Recorder, RunStart]:
    """Return the recording, new or to resume, and where the run starts in it."""
    from servetop.core.clock import ClockAnchor
    from servetop.core.interfaces.run_source import RunHeader
    from servetop.recordings.write.recorder import Recorder
    from servetop.recordings.write.resume import RunStart, resume_recording
    from servetop.run.manifest.versions import host_facts, versions

    if resume:
        return resume_recording(recording, config)
    anchor = ClockAnchor.take()
    header = RunHeader(
        config=config,
        anchor=anchor,
        versions=versions(),
        host=host_facts(),
        pid=os.getpid(),
        manifest={"command_line": list(command_line)} if command_line else {},
    )
    return Recorder.create(recording, header), RunStart(anchor=anchor)


def _metrics_followers(
    config: RunConfig, recording: Path, start: RunStart, *, loop: RunLoop | WatchLoop, context: RunContext
) -> list[MetricsFollower]:
    """Return what serves and pushes the run's metrics; empty if neither was asked for."""
    execution = context.execution
    if execution.metrics is None and not execution.otlp:
        return []
    from servetop.run.exporter.serve_metrics import metrics_followers

    return metrics_followers(
        config, execution, recording=recording, anchor=start.anchor, ticks=loop.ticks, phase=lambda: loop.phase
    )


def _register(config: RunConfig, recording: Path, loop: RunLoop | WatchLoop) -> Registration:
    """Register the run for `servetop ps`."""
    from servetop.recordings.format.liveness import Writer
    from servetop.run.process.registered_run import RegisteredRun
    from servetop.run.process.run_registry import Registration, RunRegistry

    registry, process = RunRegistry(), Writer.this_process()
    run = RegisteredRun(
        id=registry.new_id(),
        pid=process.pid,
        began=process.started,
        host=process.host,
        engine=config.engine.known_as,
        model=redactor_of(config).text(config.engine.model),
        label=redactor_of(config).text(config.label),
        recording=recording.absolute(),
        state="",
    )
    registration = Registration(registry, run, warn=lambda text: loop.warn("ps", text=text))
    registration.update(state=loop.phase, detached=False)
    return registration


async def _run_with_observers(
    loop: RunLoop | WatchLoop,
    context: RunContext,
    registration: Registration,
    manifest: ManifestRecorder,
    *,
    metrics: Sequence[MetricsFollower],
) -> RunEnd:
    """Run the loop, with signals, owner, registry, manifest, metrics and observer active."""
    context.signals.apply_to(loop.stop_requests)
    if context.owner is not None:
        context.owner.watch(loop.stop_requests)
    tasks = [asyncio.ensure_future(_update_registration(loop, registration, owner=context.owner))]
    others = (manifest, *metrics, context.observer)
    tasks += [asyncio.ensure_future(each.follow()) for each in others if each is not None]
    try:
        end = await loop.run()
    finally:
        context.signals.ignore()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # an error of the run itself has precedence
        await manifest.finish()
    return end


async def _update_registration(
    loop: RunLoop | WatchLoop, registration: Registration, *, owner: OwnerPipe | None
) -> None:
    from servetop.core.tick import TICK_SECONDS

    while True:
        detached = owner is not None and not owner.waits
        registration.update(state=loop.phase, detached=detached, trouble=loop.ticks.trouble, engine=loop.engine_name)
        await asyncio.sleep(TICK_SECONDS)


def main(argv: Sequence[str]) -> int:
    """Execute the run of the process that started this one; print only errors."""
    name, *flags = argv
    recording, owner = Path(name), OwnerPipe(sys.stdin.fileno())
    config = RunConfig()
    sender = None
    try:
        sender = None if AWAIT_FRAME in flags else FirstSender.start()
        setup = owner.read_setup()
        config = from_data(RunConfig, setup["config"])
        with RunSignals().caught() as signals:
            context = RunContext(
                signals=signals, owner=owner, command_line=setup["command_line"], execution=Execution.of_setup(setup)
            )
            run = execute(config, recording, context=context, resume="--resume" in flags, sender=sender)
            run_on_finish(context.execution.on_finish, run.recorder, exit_code=run.end.exit_code, quiet=True)
        if run.recorder.unrecorded is not None:  # otherwise the reason is in the recording
            console.message(run.end.reason)
        return run.end.exit_code
    except ServetopError as error:
        console.message(redactor_of(config).sentence(str(error)))
        return int(error.exit_code)
    except Exception as error:
        if not (reason := exhausted_resource(error)):
            raise
        silence_teardown()
        console.message(reason)
        return int(ExitCode.RUN_FAILED)
    finally:
        if sender is not None:
            sender.end_unused()
        if THROW_AWAY in flags and not owner.waits:
            shutil.rmtree(recording.parent, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
