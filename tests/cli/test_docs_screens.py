"""Command lines of the docs that open a screen are run in a terminal, where `q` ends it; `stop` ends runs without one.

`k7fq` becomes the id of a run. Runs that a line starts are on the simulator, and have less to do.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servetop.recordings.library.samples import sample_path
from servetop.recordings.read.reader import RecordingReader
from tests.cli.docs_lines import SCREENS, lines_of
from tests.cli.docs_runs import with_simulator
from tests.cli.terminal import Terminal
from tests.harness import SLOW_MACHINE, Servetop, opened, received, wait_for

pytestmark = pytest.mark.integration

LINES = [line for lines in lines_of(SCREENS).values() for line in lines]
ENDLESS = ("--request-rate", "4", "--duration", "300", "--output-len", "4")
COMPARED = "Δ"
"""The sign of a difference from the baseline."""
LEFT = "\x1b[?1049l"
"""The escape sequence that ends the alternate screen."""


def of(*commands: str) -> list[str]:
    return [line for line in LINES if line.partition(" ")[0] in commands]


@pytest.fixture
def servetop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Servetop:
    """The command line in a folder with recordings of the names in the docs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    for name in ("main", "new"):
        for folder in (tmp_path, tmp_path / "recordings"):
            shutil.copy(sample_path("sample"), folder / f"{name}.servetop")
    return Servetop(tmp_path / "recordings")


def shown(servetop: Servetop, line: str, until: Callable[[Terminal], bool], *, stops: bool = False) -> str:
    """What a line prints in a terminal that is left by `q` once it shows what it should; it ends with 0.

    `stops`: the run is the screen's own, and drains when the question about it is answered.
    """
    print(f"servetop {line}")  # noqa: T201 - in the report of a failure
    argv = [sys.executable, "-m", "servetop", *shlex.split(line)]
    with Terminal.run(argv, servetop.environment) as terminal:
        wait_for(lambda: until(terminal), seconds=60, what="the screen")
        if line == "replay":
            wait_for(lambda: "filters by name" in terminal.text, seconds=30, what="the list")
            before = len(terminal.text)
            terminal.type("\r")
            wait_for(lambda: "■ ended" in terminal.text[before:], seconds=30, what="the chosen recording")
        terminal.type("q")
        if stops:
            wait_for(lambda: "drain and quit" in terminal.text, seconds=30, what="the question")
            terminal.type("d")
        code = terminal.process.wait(60 * SLOW_MACHINE)
        assert code == 0, terminal.text[-2000:]
        wait_for(lambda: LEFT in terminal.text, seconds=10, what="the end of the screen")
        return terminal.text


def says(text: str) -> Callable[[Terminal], bool]:
    return lambda terminal: text in terminal.text


@pytest.mark.parametrize("line", of("replay"))
def test_a_recording_is_shown(line: str, servetop: Servetop) -> None:
    shown(servetop, line, says(COMPARED if "--against" in line else "■ ended"))


@pytest.mark.parametrize("line", [line for line in LINES if line == "" or line.startswith("--")])
def test_a_run_is_shown_and_stopped(line: str, servetop: Servetop) -> None:
    before = set(servetop.folder.glob("*.servetop"))

    def loads(terminal: Terminal) -> bool:
        new = set(servetop.folder.glob("*.servetop")) - before
        return "● REC" in terminal.text and bool(new) and any(map(has_tokens, new))

    shown(servetop, with_simulator(line), loads, stops=True)
    (recording,) = set(servetop.folder.glob("*.servetop")) - before
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        assert reader.end is not None
        assert (reader.end.exit_code, reader.header.config.engine.name) == (0, "sim")


def has_tokens(path: Path) -> bool:
    reader = opened(path)
    if reader is None:
        return False
    with contextlib.closing(reader):
        return received(reader)


@pytest.fixture
def run_id(servetop: Servetop) -> Iterator[str]:
    """The id of a run in the background, which is stopped if it still runs."""
    started = servetop("--detach", "--json", *ENDLESS)
    assert started.code == 0, started.err
    found: str = json.loads(started.out)["id"]
    yield found
    if found in servetop("ps").out:
        servetop("stop", found, "--now")


@pytest.mark.parametrize("line", of("stop"))
def test_a_run_in_the_background_is_shown_and_stopped(line: str, servetop: Servetop, run_id: str) -> None:
    path = wait_for(lambda: next(servetop.folder.glob("*sim*.servetop"), None), seconds=60, what="the recording")
    wait_for(lambda: has_tokens(path), seconds=60, what="the first tokens")
    for attach in of("attach") if "--now" not in line else []:
        assert "continues" in shown(
            servetop, attach.replace("k7fq", run_id), says(COMPARED if "--against" in attach else "● REC")
        )
    done = servetop(*shlex.split(line.replace("k7fq", run_id)))
    assert done.code == 0, done.err
    assert f"{run_id} has ended" in done.out
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.end is not None


def test_all_lines_are_run() -> None:
    assert len(LINES) == len(of("replay", "attach", "stop", "")) + sum(line.startswith("--") for line in LINES)
