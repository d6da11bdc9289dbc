"""The dashboard in a browser: the run, or a recording, is served by viewers, one for each page that is open."""

from __future__ import annotations

import asyncio
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from servetop.cli.look import Look, check_theme
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode, UsageError

WEB_PORT = 8765
WEB_PAGE = Path(__file__).with_name("web_page")
"""Folder of the page's template: unlike that of Textual's server it loads nothing from another host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """Where the page is; the loopback address by default, because whoever opens the page can steer the run."""

    host: str = "127.0.0.1"
    port: int = WEB_PORT


def serve_recording(recording: Path, address: WebAddress, look: Look) -> int:
    """Serve viewers of a recording until ctrl+c."""
    check_web(look)
    _serve(recording, address, look)
    return int(ExitCode.OK)


def run_in_browser(config: RunConfig, recording: Path, *, address: WebAddress, look: Look, resume: bool) -> int:
    """Start the run process once, and serve viewers of its recording; ctrl+c ends both. The run's exit code."""
    from servetop.cli.dashboard import open_when_there, start_run_process
    from servetop.cli.report import print_recording

    check_web(look)
    with tempfile.TemporaryFile("w+") as complaints:
        process = start_run_process(config, recording, complaints=complaints, resume=resume)
        try:
            asyncio.run(open_when_there(recording, process, complaints=complaints)).close()
            _serve(recording, address, look)
        finally:
            code = _end(process)
    print_recording(str(recording), as_json=False)
    return code


def check_web(look: Look) -> None:
    """UsageError when the server is not installed, or there is no such theme."""
    import importlib.util

    check_theme(look.theme)
    if importlib.util.find_spec("textual_serve") is None:
        raise UsageError("--web needs textual-serve, which is not installed: pip install 'servetop[web]'")


def viewer_command(recording: Path, look: Look) -> str:
    """What the server runs for each page: any number of viewers of one recording."""
    words = [sys.executable, "-m", "servetop", "replay", str(recording.absolute())]
    words += ["--theme", look.theme] if look.theme else []
    words += ["--reduced-motion"] if look.reduced_motion else []
    return shlex.join(words)


def _serve(recording: Path, address: WebAddress, look: Look) -> None:
    from servetop.cli.web_server import ViewerServer

    server = ViewerServer(
        viewer_command(recording, look),
        host=address.host,
        port=address.port,
        title="servetop",
        templates_path=WEB_PAGE,
    )
    try:
        asyncio.set_event_loop(asyncio.new_event_loop())
        server.serve()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot serve at {address.host}:{address.port} ({why}): try another --web-port") from error


def _end(process: subprocess.Popen[str]) -> int:
    """Of a run that goes on, cancel what is in flight; the run process ends its engine itself."""
    if process.poll() is None:
        sys.stderr.write("servetop: ending the run\n")
        process.send_signal(signal.SIGINT)
    return process.wait()
