"""A server that cannot be attached to is one JSON object with `--json`, from each command that attaches."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from servetop.cli.main import main
from servetop.core.errors import ExitCode

COMMANDS = {
    "a run": ("--headless", "--num-prompts", "2", "--url"),
    "doctor": ("doctor",),
    "run-pairs": ("run-pairs", "--a=", "--b=", "--num-prompts", "2", "--budget", "5s", "--url"),
}


@pytest.fixture
def refusing_url() -> Iterator[str]:
    """An address that refuses connections, and that no other process can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and never listens
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_refused_connection_is_one_json_object_with_reason_and_exit_code(
    command: str, refusing_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*COMMANDS[command], refusing_url, "--json", *(["--no-record"] if command == "a run" else [])]
    assert main(words) == ExitCode.ENGINE_FAILED
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["exit_code"], out.count("\n")) == (ExitCode.ENGINE_FAILED, 1)
    assert f"nothing answers at {refusing_url} (connection refused): is the server up?" in answer["error"]
    assert answer["error"] in err
