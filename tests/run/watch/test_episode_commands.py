"""The command of `--on-episode`: what it is told, and that a slow or broken one harms nothing."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from servetop.analysis.fleet.server_episodes import EpisodeChange
from servetop.core.errors import UsageError
from servetop.run.watch.episode_commands import AT_ONCE, MOST_WAITING, EpisodeCommands, command_words
from tests.harness import SLOW_MACHINE

LONG = 60 * SLOW_MACHINE
TELL = """
import os, sys
words = [os.environ["SERVETOP_EPISODE_" + name] for name in ("STATE", "KIND", "SERVER", "URL", "SINCE", "TEXT")]
with open(sys.argv[1], "a") as file:
    file.write("|".join(words) + "\\n")
"""


def change(number: int = 1, *, begins: bool = True, text: str = "gpu1: KV-bound") -> EpisodeChange:
    return EpisodeChange(
        begins=begins,
        kind="KV-bound",
        number=number,
        name=f"gpu{number}",
        url=f"http://gpu{number}:8000",
        since=90.0,
        text=text,
    )


def run(
    words: Sequence[str], changes: Sequence[EpisodeChange], *, longest: float = LONG, wait: float = LONG
) -> list[str]:
    """Run a command for changes; returns the notes."""
    notes: list[str] = []

    async def all_run() -> None:
        commands = EpisodeCommands(words, origin=1_000_000_000.0, note=notes.append, longest=longest)
        for each in changes:
            commands.add(each)
        await commands.close(seconds=wait)

    asyncio.run(all_run())
    return notes


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-c", program, *arguments]


def test_the_command_is_told_what_began_and_what_ended(tmp_path: Path) -> None:
    told = tmp_path / "told"
    ended = change(begins=False, text="gpu1: KV-bound for 1:00, now serving")
    assert run(python(TELL, str(told)), [change(text='gpu1: KV-bound: "100 %" $HOME'), ended]) == []
    assert told.read_text().splitlines() == [
        'begins|KV-bound|gpu1|http://gpu1:8000|2001-09-09T01:48:10+00:00|gpu1: KV-bound: "100 %" $HOME',
        "ends|KV-bound|gpu1|http://gpu1:8000|2001-09-09T01:48:10+00:00|gpu1: KV-bound for 1:00, now serving",
    ]


def test_one_process_at_a_time_for_a_server_and_a_few_for_all(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, sys, time
folder, server = pathlib.Path(sys.argv[1]), os.environ["SERVETOP_EPISODE_SERVER"]
(folder / f"{{server}}.running").touch(exist_ok=False)  # fails if another one of this server runs
time.sleep(0.2)
running = len(list(folder.glob("*.running")))
(folder / f"{{server}}.running").unlink()
if running > {AT_ONCE}:
    sys.exit(f"{{running}} run")
"""
    servers = range(AT_ONCE + 4)
    changes = [change(number, begins=begins) for begins in (True, False) for number in servers]
    assert run(python(program, str(tmp_path)), changes) == []


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    child = "import pathlib, sys, time; time.sleep(2); pathlib.Path(sys.argv[1]).touch()"
    program = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', *sys.argv[1:]])"
    alive = tmp_path / "alive"
    notes = run(python(program, child, str(alive)), [change()], longest=0.5)
    assert notes == [f"{sys.executable} had not ended after 0.5 s and was killed"]
    asyncio.run(asyncio.sleep(2.5))
    assert not alive.exists()


def test_the_end_of_the_watch_waits_for_a_moment_and_kills_what_still_runs() -> None:
    notes = run(python("import time; time.sleep(600)"), [change(), change(begins=False)], wait=0.5)
    assert notes == ["the watch ended before the command: killed"]


def test_a_failure_is_noted_once_with_the_last_line_of_its_error_output() -> None:
    fails = python("import sys; print('out'); sys.exit('one\\n\\x1b[31mno route to the pager\\n')")
    notes = run(fails, [change(), change(begins=False), change(2)])
    assert len(notes) == 1
    assert notes[0].startswith(f"{sys.executable} exited with status 1: ")
    assert notes[0].endswith("no route to the pager")
    assert "\x1b" not in notes[0]
    gone = run(["/nowhere/notify"], [change()])
    assert gone == ["cannot run '/nowhere/notify': no such file or directory"]


def test_much_error_output_does_not_stop_the_command(tmp_path: Path) -> None:
    done = tmp_path / "done"
    program = "import pathlib, sys; sys.stderr.write('x' * 10_000_000); pathlib.Path(sys.argv[1]).touch()"
    assert run(python(program, str(done)), [change()]) == []
    assert done.exists()


def test_of_more_changes_than_a_slow_command_can_follow_whole_episodes_are_left_out(tmp_path: Path) -> None:
    told = tmp_path / "told"
    changes = [change(begins=number % 2 == 0) for number in range(4 * MOST_WAITING)]
    (note,) = run(python(TELL, str(told)), changes)
    assert note == "gpu1: its state changes faster than the command ends: not run for each change"
    states = [line.partition("|")[0] for line in told.read_text().splitlines()]
    assert states == ["begins", "ends"] * (MOST_WAITING // 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the command is empty"),
        ("'unclosed", "No closing quotation"),
        ("/nowhere/notify now", "cannot run '/nowhere/notify': give the path of a program"),
    ],
)
def test_a_command_that_cannot_be_run_is_a_usage_error(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        command_words(text)


def test_words_are_split_as_by_a_shell_and_nothing_is_expanded() -> None:
    text = f"{shlex.quote(sys.executable)} -c 'a b' $HOME '*'"
    assert command_words(text) == [sys.executable, "-c", "a b", "$HOME", "*"]
