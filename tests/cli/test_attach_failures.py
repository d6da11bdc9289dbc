"""With --json, every command that cannot attach to a server prints one JSON object with the error and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import Servetop
from tests.odd_server import OddServer, Reply, odd_server

pytestmark = pytest.mark.integration

BRIEF = ("--num-prompts", "2", "--input-len", "8", "--output-len", "4")
PAGE = Reply(200, b"<html><body>Please log in</body></html>", "text/html")
COMMANDS: dict[str, Callable[[str, Path], tuple[str, ...]]] = {
    "run": lambda url, _: ("--url", url, *BRIEF),
    "doctor": lambda url, _: ("doctor", url),
    "sweep": lambda url, folder: ("sweep", _sweep_file(folder, url)),
    "run-pairs": lambda url, folder: ("run-pairs", "--a=", "--b=", "--url", url, *BRIEF, "--into", f"{folder}/pairs"),
}


def _sweep_file(folder: Path, url: str) -> str:
    file = folder / "cells.toml"
    file.write_text(f'url = "{url}"\nnum_prompts = 2\nmax_concurrency = [1, 2]\n')
    return str(file)


def page_of_html(server: OddServer) -> str:
    server.pages = dict.fromkeys(("/v1/models", "/health", "/metrics"), PAGE)
    return "lists no models (HTTP 200: <html><body>Please log in</body></html>): is that the server's address?"


def key_required(server: OddServer) -> str:
    server.key = "k3y"
    return "requires authentication (HTTP 401): put the API key into an environment variable"


@pytest.mark.parametrize("fault", [page_of_html, key_required], ids=["HTML", "401"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_failure_to_attach_is_one_json_object(
    servetop: Servetop, tmp_path: Path, command: str, fault: Callable[[OddServer], str]
) -> None:
    with odd_server() as server:
        reason = fault(server)
        done = servetop(*COMMANDS[command](server.url, tmp_path), "--json")
    assert done.code == done.summary["exit_code"] == 3, done.err
    assert reason in done.summary["error"]
    assert done.err.splitlines()[-1] == f"servetop: {done.summary['error']}"
