"""The command of --on-finish: what it gets, and that its failures are one line and nothing more."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.write.recorder import Recorder
from servetop.run.process import finish_command
from servetop.run.process.finish_command import run_on_finish

PRINT = (
    "import json, os, sys; names = ('RECORDING', 'EXIT_CODE', 'HEADLINE');"
    "json.dump({name: os.environ['SERVETOP_' + name] for name in names}, open(sys.argv[1], 'w'))"
)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    found = Recorder.create(tmp_path / "run.servetop", RunHeader(config=RunConfig(), anchor=ClockAnchor.take()))
    found.close(RunEnd(at=1.0, exit_code=99, reason="too slow"), headline="KV-bound: $HOME is 'full'")
    return found


def test_the_command_gets_the_result_of_the_run(
    recorder: Recorder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "written file.json"
    run_on_finish((sys.executable, "-c", PRINT, str(written)), recorder, exit_code=99)
    assert capfd.readouterr() == ("", "")
    assert written.read_text() == (
        f'{{"RECORDING": "{recorder.path.absolute()}", "EXIT_CODE": "99", "HEADLINE": "KV-bound: $HOME is \'full\'"}}'
    )


def test_what_servetop_set_for_itself_is_not_in_its_environment(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("SERVETOP_ADDED", "OPENBLAS_NUM_THREADS")
    written = tmp_path / "environment"
    words = (sys.executable, "-c", "import os, sys; open(sys.argv[1], 'w').write(' '.join(os.environ))", str(written))
    run_on_finish(words, recorder, exit_code=0)
    names = written.read_text().split()
    assert "SERVETOP_RECORDING" in names
    assert {"OPENBLAS_NUM_THREADS", "SERVETOP_ADDED"}.isdisjoint(names)


def test_what_it_prints_goes_to_stderr_or_nowhere(recorder: Recorder, capfd: pytest.CaptureFixture[str]) -> None:
    command = (sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)")
    run_on_finish(command, recorder, exit_code=0)
    out, err = capfd.readouterr()
    assert (out, sorted(err.split())) == ("", ["err", "out"])
    run_on_finish(command, recorder, exit_code=0, quiet=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["/nonexistent/hook"], "/nonexistent/hook cannot be started (no such file or directory)"),
        ([sys.executable, "-c", "raise SystemExit(3)"], f"{sys.executable} ended with exit code 3"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], f"{sys.executable} was ended by SIGKILL"),
        (["a\0b"], "ab cannot be started (embedded null byte)"),
    ],
    ids=["missing", "fails", "killed", "null"],
)
def test_a_failure_is_one_line(
    words: list[str], reason: str, recorder: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    run_on_finish(words, recorder, exit_code=0)
    out, err = capfd.readouterr()
    assert (out, err) == ("", f"servetop: --on-finish: {reason}\n")


def test_a_command_that_does_not_end_is_killed_with_what_it_started(
    recorder: Recorder, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish_command, "LIMIT_SECONDS", 1.0)
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    run_on_finish((sys.executable, "-c", child), recorder, exit_code=0)
    assert "was killed, because it did not end within 1 s" in capfd.readouterr().err


def test_the_option_has_the_words_of_a_shell(tmp_path: Path) -> None:
    from servetop.cli.options.conversion import read_options
    from servetop.cli.options.run_options import RunOptions

    text = shlex.join(["notify", "a b", "$HOME"])
    assert read_options(RunOptions, {"on_finish": text}).output.on_finish == ("notify", "a b", "$HOME")
