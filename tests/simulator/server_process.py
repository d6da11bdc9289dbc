"""The simulator's server, as a separate process or on a thread of this one."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx

from servetop.cli.main import main
from servetop.simulator.serve import SimulatorServer
from tests.harness import SLOW_MACHINE


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    """The process and its URL, once it is ready; it runs 50 times as fast as real time."""
    command = [
        sys.executable,
        "-m",
        "servetop",
        "serve",
        "--port",
        "0",
        "--time-scale",
        "0.02",
        *options,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = ""
    for line in process.stderr:
        if "http://" in line:
            url = line.rpartition(" ")[2].strip()
        if "ready" in line:
            return process, url
    raise AssertionError("the server ended before it was ready")


def serve(*options: str) -> int:
    """Run `servetop serve` in this process, and return its exit code."""
    return main(["serve", *options])


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> int:
    """Terminate it, check that it wrote no traceback, and return its exit code."""
    process.send_signal(number)
    _, rest = process.communicate(timeout=10 * SLOW_MACHINE)
    assert "Traceback" not in rest
    return process.returncode


@contextlib.contextmanager
def client_of(server: SimulatorServer) -> Iterator[httpx.Client]:
    """A client of a server that runs on another thread."""
    with asyncio.Runner() as runner, ThreadPoolExecutor(1) as thread:
        loop = runner.get_loop()
        running = thread.submit(loop.run_forever)
        url = asyncio.run_coroutine_threadsafe(server.start("127.0.0.1", 0), loop).result(10)
        try:
            with httpx.Client(base_url=url, timeout=20.0) as client:
                yield client
        finally:
            loop.call_soon_threadsafe(server.close)
            loop.call_soon_threadsafe(loop.call_soon, loop.stop)
            running.result(10)
