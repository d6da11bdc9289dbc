"""Shows a run or a recording in a browser: a server starts one viewer process per open page."""

from __future__ import annotations

import asyncio
import secrets
import signal
from pathlib import Path

from servetop.cli.configuration.web_address import WebAddress, web_address_of
from servetop.cli.options.output_options import DisplayOptions, WebOptions
from servetop.cli.viewing.baseline_file import with_baseline_path
from servetop.cli.viewing.display_options import check_theme
from servetop.cli.viewing.viewer_signals import ViewerSignals
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode, UsageError, system_reason
from servetop.core.system.own_python import python_argv
from servetop.recordings.library.catalog import resolve
from servetop.run import console
from servetop.run.process.execution import Execution


def serve_named(name: str, web: WebOptions, display: DisplayOptions) -> int:
    """Serves viewers of a recording, by its name, label or path, until Ctrl-C."""
    return serve_recording(resolve(name), web_address_of(web), display)


def serve_recording(recording: Path, address: WebAddress, display: DisplayOptions) -> int:
    """Serves viewers of a recording until Ctrl-C."""
    check_web(display)
    display = with_baseline_path(display)
    signals = ViewerSignals()
    with signals.caught():
        _serve(recording, address, display, signals)
    return int(ExitCode.OK)


def run_in_browser(
    config: RunConfig,
    recording: Path,
    *,
    address: WebAddress,
    display: DisplayOptions,
    execution: Execution,
) -> int:
    """Starts the run process once and serves viewers of its recording; the signal that ends this process ends both.

    Returns the run's exit code.
    """
    from servetop.cli.viewing.dashboard import conclude
    from servetop.run.process.owned_run import OwnedRun, stderr_file

    check_web(display)
    display = with_baseline_path(display)
    with stderr_file() as stderr:
        run = OwnedRun.start(config, recording, stderr=stderr, execution=execution)
        signals = ViewerSignals(run.signal)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, run.end_with_terminal)
        with signals.caught():
            asyncio.run(run.opened()).close()
            try:
                if not signals.exit_requested():
                    _serve(recording, address, display, signals)
            except UsageError:
                run.signal(signal.SIGINT)
                run.wait()
                raise
            if not run.ended:
                console.message("ending the run")
            return conclude(run, throw_away=execution.throw_away)


def check_web(display: DisplayOptions) -> None:
    """Raises UsageError if the server is not installed or there is no such theme."""
    import importlib.util

    check_theme(display.theme)
    if importlib.util.find_spec("textual_serve") is None:
        raise UsageError("--web needs textual-serve, which is not installed: pip install 'servetop[web]'")


def viewer_command(recording: Path, display: DisplayOptions, *, steer: bool) -> list[str]:
    """Return the command that the server runs for each page; any number of viewers may show one recording."""
    command = [*python_argv("-m", "servetop", "replay", str(recording.absolute()))]
    command += [] if steer else ["--read-only"]
    command += ["--theme", display.theme] if display.theme else []
    command += ["--against", display.against] if display.against else []
    command += ["--reduced-motion"] if display.reduced_motion else []
    return command


def _serve(recording: Path, address: WebAddress, display: DisplayOptions, signals: ViewerSignals) -> None:
    """Serves until a signal arrives."""
    from servetop.cli.web.web_server import ViewerServer

    server = ViewerServer(
        viewer_command(recording, display, steer=address.steer),
        address,
        token=secrets.token_urlsafe(24),
        exit_requested=signals.exit_requested,
    )
    try:
        asyncio.run(server.serve())
    except OSError as error:
        why = system_reason(error)
        raise UsageError(f"cannot serve at {address.host}:{address.port} ({why}): try another --web-port") from error
