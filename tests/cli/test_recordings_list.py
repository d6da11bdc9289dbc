"""`servetop ls` says on a terminal, and only there, which commands take a recording."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from servetop.cli.inspection.recordings_list import next_step, print_recordings
from tests.cli.terminal import Terminal
from tests.harness import SLOW_MACHINE, wait_for
from tests.recorded_watches import watch_of_one

HINT = "Next: servetop replay NAME"


def test_the_commands_that_follow_take_names_or_paths() -> None:
    commands = f"{HINT} · summary NAME · report NAME · compare NAME NAME"
    assert next_step(None) == f"{commands} (a label or the start of a name is enough)"
    assert next_step(Path("/data/w.servetop")) == f"{commands} (NAME is a path, such as /data/w.servetop)"


@pytest.mark.parametrize("as_json", [True, False])
def test_a_pipe_or_json_gets_the_list_alone(as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch_of_one(tmp_path / "w.servetop")
    assert print_recordings(tmp_path, as_json=as_json) == 0
    printed = capsys.readouterr().out
    assert "w" in printed
    assert HINT not in printed


def test_on_a_terminal_the_last_line_says_what_to_do_next(tmp_path: Path) -> None:
    watch_of_one(tmp_path / "w.servetop")
    argv = [sys.executable, "-m", "servetop", "ls", str(tmp_path)]
    with Terminal.run(argv, os.environ) as terminal:
        wait_for(lambda: HINT in terminal.text, seconds=20, what="the hint")
        assert terminal.process.wait(20 * SLOW_MACHINE) == 0
    row = terminal.text.partition(HINT)[0].splitlines()[-1]
    assert row.split()[-6:-1] == ["vllm", "tiny", "1:00", "watch", "–"]
    assert terminal.text.count("Next: ") == 1
