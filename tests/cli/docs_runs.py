"""Command lines of the docs as they are run here: with shorter loads, and with the simulator as their engine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from servetop.recordings.read.reader import RecordingReader
from tests.cli.gateway_log import write_gateway_log
from tests.harness import PYTHON, CommandInProcess, Finished, folders_in

CODES: Mapping[str, frozenset[int]] = {
    "doctor": frozenset({0}),
    "rerun": frozenset({0, 99}),
    "run-pairs": frozenset({0, 98}),  # answered or not within the pairs that a test has
    "search": frozenset({0, 98, 99}),  # answered, not resolved within ten seconds, or beyond the objective
    "sweep": frozenset({0, 99}),
    "watch": frozenset({0, 98, 99}),  # a threshold on what was measured for a second
    "run": frozenset({0, 99}),  # 99: an unmet threshold, or this machine was too busy to keep the load's times
}
"""The exit codes of docs/reference/exit-codes.md that the outcome of a command may have here."""
_SHORTER = (
    (r"--duration \S+", "--duration 1s"),
    (r"--num-prompts \d\d+", "--num-prompts 12"),
    (r"--num-warmups \d\d+", "--num-warmups 2"),
    (r"--input-len 1000", "--input-len 128"),
    (r"--output-len 64", "--output-len 8"),
    (r"(--ramp '?)(?:\d+-)?(\d+):\w+", r"\1\2:1s"),
    (r"--budget 2h", "--budget 2s"),
    (r"--budget \d+m", "--budget 10s"),
)
_LOADS = ("--duration", "--num-prompts", "--ramp", "--dataset-path", "--config")
_HAS_LENGTHS = re.compile("--output-len|--config|--dataset-path|[.]toml")
_HAS_NO_SCREEN = re.compile("--(headless|json|detach|example|dry-run)")
_OF_VLLM = (" -- --max-num-batched-tokens 4096", " -- --dtype half")
_SWEEP = "request_rate = [40, 80]\nnum_prompts = 8\nrandom_input_len = 16\nrandom_output_len = 4\nlabel = 'small'\n"
_CONFIG = "request_rate = 40\nnum_prompts = 8\nrandom_input_len = 16\nrandom_output_len = 4\n"


def command_of(line: str) -> str:
    """The subcommand of a line; `run` without one."""
    first = line.partition(" ")[0]
    return first if first in CODES else "run"


def with_simulator(line: str) -> str:
    """A line with the simulator in place of the engine that it names, without what only that engine takes."""
    line = re.sub(r"--engine vllm( --model \S+)?", "--engine sim", line)
    for words in _OF_VLLM:
        line = line.removesuffix(words)
    return re.sub(r"--max-num-batched-tokens (\d+)", r"--max-num-seqs \1", line)


def bounded(line: str) -> str:
    """A line with less to measure and without a dashboard; its other options stay."""
    own, dashes, rest = line.partition(" -- ")
    for pattern, shorter in _SHORTER:
        own = re.sub(pattern, shorter, own)
    return f"{own}{' '.join(['', *_bounds(own, command_of(own))])}{dashes}{rest}"


def _bounds(line: str, command: str) -> Iterator[str]:
    """The options that a line needs in order to end soon."""
    if command == "run" and not any(option in line for option in _LOADS):
        yield "--num-prompts 8"
        yield from () if "--request-rate" in line else ("--request-rate 40",)
    if command in ("run", "run-pairs") and not _HAS_LENGTHS.search(line):
        yield "--output-len 4"
    if command == "run-pairs" and "--budget" not in line:
        yield "--budget 2s"
    if command == "watch" and "--duration" not in line:
        yield "--duration 1s"
    if command == "watch" and "--threshold" in line:
        yield "--for 1s"
    if command == "search" and not re.search("--(budget|resume)", line):
        yield "--budget 10s"
    if "sweep whitepaper" in line:
        yield "--dry-run"
    elif command not in ("doctor", "run-pairs") and not _HAS_NO_SCREEN.search(line):
        yield "--headless"


def write_files(folder: Path) -> None:
    """Write the files that the lines name: a small sweep, options of runs, a trace, and a command for episodes."""
    (folder / "grid.toml").write_text(_SWEEP, encoding="utf-8")
    for name in ("run", "bench", "main"):
        (folder / f"{name}.toml").write_text(_CONFIG, encoding="utf-8")
    (folder / "change.toml").write_text(f"{_CONFIG}max_num_seqs = 4\n", encoding="utf-8")
    (folder / "notify.sh").write_text('#!/bin/sh\necho "$1 $SERVETOP_EXIT_CODE" >notified\n', encoding="utf-8")
    (folder / "notify.sh").chmod(0o755)
    write_gateway_log(folder / "gateway.jsonl", sessions=6, seconds=1.0)
    done = CommandInProcess(folder)("shape", str(folder / "gateway.jsonl"), "-o", str(folder / "shape.jsonl"))
    assert done.code == 0, done.err


def in_shell(line: str, folder: Path, variables: Mapping[str, str] | None = None) -> Finished:
    """Run a line of the docs in a folder, as a shell runs it; its recordings are in the folder `recordings`."""
    print(f"servetop {line}")  # noqa: T201 - in the report of a failure
    done = subprocess.run(
        ["sh", "-c", f"exec {PYTHON} -m servetop {line}"], cwd=folder, stdin=subprocess.DEVNULL,
        env={**os.environ, **folders_in(folder / "recordings"), **(variables or {})},
        capture_output=True, text=True, timeout=540, check=False,
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr)


def newest(folder: Path) -> Path:
    """The recording in a folder that was written last."""
    return max(folder.glob("*.servetop"), key=lambda path: path.stat().st_mtime_ns)


def assert_line_ran(line: str, done: Finished, folder: Path) -> None:
    """A line ended with an exit code of its outcome, printed what it is for, and its recording is whole."""
    message, command = f"servetop {line}\nexit code {done.code}\n{done.err[-1500:]}", command_of(line)
    assert done.code in CODES[command], message
    if "--json" in line:
        assert json.loads(done.out), message
    if command == "doctor" or "--example" in line or "--dry-run" in line:
        assert done.out, message
    elif command == "run-pairs":
        for path in (folder / "pairs").glob("*.servetop"):
            _assert_ended(path, None, message)
        assert (folder / "pairs" / "b-001.servetop").exists(), message
    elif "--detach" not in line:
        named = re.search(r"--record (\S+)", line)
        _assert_ended(folder / named[1] if named else newest(folder / "recordings"), done.code, message)


def _assert_ended(recording: Path, code: int | None, message: str) -> None:
    """The recording has ticks and an end, with the exit code of its command."""
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        assert reader.end is not None, message
        assert code is None or reader.end.exit_code == code, message
        assert reader.ticks(), message
