"""The whole command: a header's value from the environment is sent and appears nowhere else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil
import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.cli.bad_server import BadServer
from tests.harness import Servetop

pytestmark = pytest.mark.integration

SECRET = "correct-horse-battery"
BRIEF = ("--num-prompts", "4", "--max-concurrency", "2", "--input-len", "8", "--output-len", "4")


def titles(pid: int) -> list[str]:
    """Command lines of a process and of those that it started."""
    lines = []
    with contextlib.suppress(psutil.Error):
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            lines.append(" ".join(process.cmdline()))
    return lines


def test_a_header_from_the_environment_is_sent_and_not_recorded_when_echoed(
    servetop: Servetop, bad_server: BadServer, tmp_path: Path
) -> None:
    servetop.environment["GATEWAY"] = SECRET
    bad_server.echo = "X-Gateway"
    seen: list[str] = []
    words = ("--url", bad_server.url, "--engine", "openai", "--header-env", "X-Gateway=GATEWAY", "--headless", "--json")
    with servetop.started(*words, *BRIEF) as process:
        while process.poll() is None:
            seen += titles(process.pid)
            with contextlib.suppress(TimeoutError):
                psutil.wait_procs([psutil.Process(process.pid)], timeout=0.1)
        out, err = process.communicate()
    assert set(bad_server.seen) == {SECRET}
    (recording,) = servetop.folder.iterdir()
    assert SECRET not in out + err + " ".join(seen)
    assert SECRET.encode() not in recording.read_bytes()
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        errors = {request.error for request in reader.requests(0.0, 1e6)}
        assert len(errors) == 1
        assert "no such tenant: [redacted]" in str(errors)
        assert reader.header.config.workload.header_env == {"X-Gateway": "GATEWAY"}


def test_an_unset_variable_is_an_error_before_anything_is_recorded(servetop: Servetop) -> None:
    done = servetop("--header-env", "X-Gateway=NO_SUCH_VARIABLE", "--headless", *BRIEF)
    assert done.code == 2
    assert "NO_SUCH_VARIABLE (--header-env X-Gateway) is unset or not printable ASCII: export it" in done.complaint
    assert not servetop.folder.exists()


def test_an_error_does_not_repeat_secrets_of_the_command_line(servetop: Servetop) -> None:
    done = servetop("--url", f"http://me:{SECRET}@127.0.0.1:1", "--headless", *BRIEF)
    assert done.code != 0
    assert SECRET not in done.err + done.out
