"""Command lines of the docs whose command is a server, an audit, or a question about a time of a watch.

`serve` gets a free port and is ended by Ctrl-C. Clients other than servetop become tests/cli/small_client.py, which
writes the result of `vllm bench serve`; loads are shorter. 14:00, 2h and 90m become times of a watch of ten minutes.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from tests.cli.docs_lines import PROGRAMS, lines_of
from tests.cli.docs_runs import bounded, in_shell, write_files
from tests.cli.docs_servers import KEYS
from tests.harness import PYTHON, Servetop, answers, printed_url, wait_for
from tests.recorded_watches import watch_of_pages

pytestmark = pytest.mark.integration

LINES = lines_of(PROGRAMS)
ALL = [line for lines in LINES.values() for line in lines]
CLIENT = f"{PYTHON} {shlex.quote(str(Path(__file__).parent / 'small_client.py'))}"


def of(command: str) -> list[str]:
    return [line for line in ALL if line.partition(" ")[0] == command]


@pytest.mark.parametrize("line", of("serve"))
def test_a_server_serves_until_ctrl_c(line: str, tmp_path: Path) -> None:
    words = (*shlex.split(line.replace("--port 8000", "")), "--port", "0")
    print(f"servetop {shlex.join(words)}")  # noqa: T201 - in the report of a failure
    with Servetop(tmp_path, KEYS).started(*words) as server:
        url = printed_url(server)
        wait_for(lambda: answers(f"{url}/health"), seconds=30, what="the server's start")
        assert answers(f"{url}/metrics")
        assert answers(f"{url}/v1/models") == ("--api-key-env" not in line)
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
    assert server.returncode == 0


@pytest.mark.parametrize("page", [page for page, lines in LINES.items() if any(line in of("audit") for line in lines)])
def test_a_client_is_audited(page: str, tmp_path: Path) -> None:
    """All lines of a page in turn, with what they leave: docs/how-to/reconcile.md continues with their files."""
    write_files(tmp_path)
    (tmp_path / "my_client.sh").write_text(f'#!/bin/sh\nexec {CLIENT} "http://$1:$2" mine.json\n', encoding="utf-8")
    (tmp_path / "my_client.sh").chmod(0o755)
    for line in LINES[page]:
        (tmp_path / "run.servetop").unlink(missing_ok=True)
        line = with_a_client(line)
        done = in_shell(line, tmp_path)
        assert done.code == 0, f"servetop {line}\n{done.err[-1500:]}"
        if line.startswith("audit"):
            assert re.search(r"^requests +\d+ seen", done.out, re.MULTILINE), done.out
            assert ("error" in done.out.partition("server ")[2]) == ("--result" in line)
    for path in tmp_path.glob("seen-*.servetop"):
        RecordingReader.open(path).close()


def with_a_client(line: str) -> str:
    """A line whose client is here, and soon done."""
    own, _, client = line.partition(" -- ")
    if client.startswith("servetop "):
        client = f"{PYTHON} -m servetop {bounded(client.removeprefix('servetop '))} --max-failures 100%"
    elif client.startswith("vllm"):
        named = re.search(r"--result-filename (\S+)", client)
        client = f"{CLIENT} {{url}} {named[1] if named else 'vllm.json'}"
    return f"{own} -- {client}" if client else own


@pytest.mark.parametrize("line", of("summary"))
def test_a_time_of_a_watch_is_summed_up(line: str, tmp_path: Path) -> None:
    (tmp_path / "recordings").mkdir()
    path = watch_of_pages(tmp_path / "recordings" / "watch.servetop", every=15.0, seconds=600.0)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        in_it = datetime.fromtimestamp(reader.header.anchor.wall_epoch_s) + timedelta(minutes=3)
    for given, here in {"14:00": f"{in_it:%H:%M}", "2h": "8m", "90m": "3m"}.items():
        line = line.replace(given, here)
    done = in_shell(line, tmp_path)
    assert done.code == 0, done.err
    if "--until" in line:
        assert "no limit was reached in 5:00" in done.out
    else:
        assert re.match(rf"([\d-]+ )?{in_it:%H:%M}:00 to ", done.out)  # with the date if midnight is in the window
