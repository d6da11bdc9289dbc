"""The command line under test, and a server with configurable faults."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.bad_server import BadServer
from tests.harness import CommandInProcess, Servetop

# Under `nohup` SIGHUP is ignored, by child processes too; these tests need it to end the processes they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def bad_server() -> Iterator[BadServer]:
    server = BadServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def servetop(tmp_path: Path) -> Servetop:
    return Servetop(tmp_path / "recordings")


@pytest.fixture
def command(tmp_path: Path) -> CommandInProcess:
    """The command line without a process of its own."""
    return CommandInProcess(tmp_path / "recordings")
