"""Starts a run: with a dashboard, the run in its own process, or headless, in this process."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servetop.cli.configuration.idle_options import RunChoices, refuse_idle_of_run
from servetop.cli.configuration.output import Output
from servetop.core.clock import wall_clock
from servetop.core.config import RunConfig
from servetop.core.errors import RecordingError, UsageError
from servetop.run import console
from servetop.run.process.execution import Execution

if TYPE_CHECKING:
    import socket

    from servetop.cli.framework.command_line import CommandLine
    from servetop.cli.options.output_options import ExporterOptions, OutputOptions
    from servetop.cli.options.run_options import RepeatableOptions


def output_of(options: RepeatableOptions, line: CommandLine[Any]) -> Output:
    """Return the destination that the options of a run describe; `line` is the command line that they come from."""
    web = None
    if options.web.web:
        from servetop.cli.configuration.web_address import web_address_of

        web = web_address_of(options.web)
    sender = line.invocation.sender
    return Output(options=options.output, no_record=options.no_record, web=web, sender=sender, given=line.given)


def launch(config: RunConfig, output: Output, *, resume: Path | None = None) -> int:
    """Runs and shows a configuration; `resume` is a recording to continue. Returns the exit code."""
    options = output.options
    if options.record and output.no_record:
        raise UsageError("--record and --no-record exclude each other: give one of them")
    headless = options.headless or options.as_json
    if headless and output.web:
        raise UsageError("--web and --headless exclude each other: give one of them")
    if options.detach and (output.web or output.no_record):
        other = "--web" if output.web else "--no-record"
        raise UsageError(f"--detach and {other} exclude each other: a detached run is found by its recording")
    if config.watch is not None:
        _check_watch(options)
    if options.display.against and (headless or options.detach):
        other = "--detach" if options.detach else "--json" if options.as_json else "--headless"
        raise UsageError(f"--against and {other} exclude each other: it draws the baseline in the dashboard")
    refuse_idle_of_run(output.given, RunChoices(config, output))
    if not headless and not output.web and not options.detach and not console.is_terminal():
        raise UsageError("the dashboard needs a terminal: add --headless, or --detach")
    with (
        _metrics_socket(options.exporter, what=kind_of(config)) as metrics,
        _recording_path(config, output) as new_path,
    ):
        path = resume or new_path
        execution = _execution(options, output, resume=resume is not None, metrics=metrics)
        if options.detach:
            from servetop.cli.viewing.detached import start_detached

            return start_detached(config, path, execution=execution, as_json=options.as_json)
        if headless:
            from servetop.cli.headless.headless import run_headless

            return run_headless(config, path, as_json=options.as_json, execution=execution, sender=output.sender)
        if output.web is not None:
            from servetop.cli.web.web import run_in_browser

            return run_in_browser(config, path, address=output.web, display=options.display, execution=execution)
        from servetop.cli.viewing.dashboard import run_with_dashboard

        return run_with_dashboard(config, path, display=options.display, execution=execution)


def _execution(options: OutputOptions, output: Output, *, resume: bool, metrics: socket.socket | None) -> Execution:
    return Execution(
        resume=resume,
        throw_away=output.no_record,
        metrics=metrics,
        otlp=_otlp_endpoint(options.exporter),
        on_finish=options.on_finish,
    )


def kind_of(config: RunConfig) -> str:
    """Return `watch` or `run`, for messages."""
    return "run" if config.watch is None else "watch"


@contextlib.contextmanager
def _metrics_socket(options: ExporterOptions, *, what: str) -> Iterator[socket.socket | None]:
    """Take the port of the run's metrics and print their address; UsageError if that is impossible."""
    if options.prometheus_port is None:
        yield None
        return
    from servetop.run.exporter.metrics_socket import listening_socket, metrics_url

    with listening_socket(options.prometheus_host, options.prometheus_port) as listening:
        console.message(f"the metrics of the {what} are at {metrics_url(listening)}")
        yield listening


def _otlp_endpoint(options: ExporterOptions) -> str:
    """Return where the run pushes its metrics; empty for nowhere. UsageError for an invalid address."""
    if not options.otlp_endpoint:
        return ""
    from servetop.run.exporter.otlp.otlp_endpoint import metrics_endpoint

    return metrics_endpoint(options.otlp_endpoint)


def _check_watch(options: OutputOptions) -> None:
    if options.display.against:
        raise UsageError("--against: a watch sends no load that a baseline could be compared with: leave it out")


@contextlib.contextmanager
def _recording_path(config: RunConfig, output: Output) -> Iterator[Path]:
    from servetop.recordings.library.paths import new_recording_path

    if output.no_record:
        recording = Path(tempfile.mkdtemp(prefix="servetop-")) / "run.servetop"
        try:
            yield recording
        finally:
            if not _is_live(recording):
                shutil.rmtree(recording.parent, ignore_errors=True)
        return
    recording = output.options.record or new_recording_path(config, wall_clock())
    yield recording
    if config.engine.url is not None:
        from servetop.recordings.library.empty_recordings import remove_empty

        remove_empty(recording)


def _is_live(recording: Path) -> bool:
    """Whether its run is still active; it then removes the recording itself."""
    from servetop.recordings.read.reader import RecordingReader

    try:
        with contextlib.closing(RecordingReader.open(recording)) as reader:
            return reader.is_live()
    except RecordingError:
        return False
