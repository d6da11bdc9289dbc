"""A run process writes a file through which other processes view and control it."""

import asyncio
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from servetop.core.clock import MonotonicClock
from servetop.core.events import Action, Command
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader

StartProgram = Callable[..., "subprocess.Popen[str]"]
DEADLINE = 20.0


def start_writer(start_program: StartProgram, path: Path, ticks: int) -> "subprocess.Popen[str]":
    """A process that has written the first of `ticks` ticks to a recording."""
    process = start_program("writer.py", path, ticks)
    assert process.stdout is not None
    assert process.stdout.readline() == "tick 0\n"
    return process


def continue_writing(process: "subprocess.Popen[str]") -> None:
    """Make the writer write its next 50 ticks."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


async def test_two_readers_that_poll_during_a_run_read_every_tick_once_in_order(
    start_program: StartProgram, tmp_path: Path
) -> None:
    path = tmp_path / "run.servetop"
    process = start_writer(start_program, path, 500)
    for _ in range(10):
        continue_writing(process)
    clock = MonotonicClock()
    seen: list[list[Tick]] = [[], []]
    with closing(RecordingReader.open(path)) as one, closing(RecordingReader.open(path)) as two:
        readers = (one, two)
        while any(reader.end is None for reader in readers) and clock.now() < DEADLINE:
            for reader, ticks in zip(readers, seen, strict=True):
                ticks += reader.poll().ticks
                assert reader.request_count() >= 4 * len(ticks)
            await asyncio.sleep(0)
    assert [[tick.index for tick in ticks] for ticks in seen] == [list(range(500))] * 2


async def test_a_command_from_another_process_is_applied_at_a_tick_and_gets_a_reply(
    start_program: StartProgram, tmp_path: Path
) -> None:
    path = tmp_path / "run.servetop"
    process = start_writer(start_program, path, 100_000)
    clock = MonotonicClock()
    commands: list[Command] = []
    with closing(RecordingReader.open(path)) as viewer, closing(RecordingReader.open(path)) as other:
        viewer.poll()
        other.send(Action.BURST, value=5.0, text="five more")
        other.send(Action.STOP, text="enough")
        continue_writing(process)
        while viewer.end is None and clock.now() < DEADLINE:
            commands += viewer.poll().commands
        assert viewer.end is not None
        commands += viewer.poll().commands
        # SQLite leaves its log if the last two processes close at one moment; any later reader merges it
        assert process.wait(DEADLINE) == 0
    replies = {command.action: command.reply for command in commands if command.reply is not None}
    assert replies == {Action.BURST: "done: five more", Action.STOP: "done: enough"}
    assert [file.name for file in tmp_path.iterdir()] == ["run.servetop"]
