"""`servetop run-pairs` as a user runs it, on the simulator."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

import pytest

from tests.docs.test_commands import command_lines
from tests.harness import Servetop, wait_for
from tests.house.source_tree import TOP

pytestmark = pytest.mark.integration

LOAD = ("--request-rate", "60", "--num-prompts", "40", "--input-len", "32", "--output-len", "16")
SLOWER = ("--a", "", "--b", "--max-num-seqs 1", "--metric", "mean_ttft_ms", "--seed", "5")


def command_of_the_guide() -> list[str]:
    """The first command line of docs/how-to/run-pairs.md, which runs on the simulator."""
    page = TOP / "docs" / "how-to" / "run-pairs.md"
    return shlex.split(command_lines(page)[0])


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*.servetop"))


def test_a_batch_of_one_is_found_to_be_worse(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop(*command_of_the_guide(), "--metric", "mean_ttft_ms", "--into", str(tmp_path / "s"), "--json")
    assert done.code == 0, done.err
    (metric,) = done.summary["metrics"]
    assert (done.summary["end"], metric["measured"]["verdict"]) == ("answered", "worse")
    pairs = done.summary["pairs"]
    assert names(tmp_path / "s") == [f"{arm}-{pair:03d}.servetop" for arm in "ab" for pair in range(1, pairs + 1)]
    assert [line[:10] for line in done.err.splitlines() if "seed" in line][:4] == [
        "pair 1 · A",
        "pair 1 · B",
        "pair 2 · B",
        "pair 2 · A",
    ]


def test_an_interrupted_series_goes_on(servetop: Servetop, tmp_path: Path) -> None:
    command = ("run-pairs", *LOAD, *SLOWER, "--into", str(tmp_path / "s"))
    with servetop.started(*command) as process:
        wait_for(lambda: "b-002.servetop" in names(tmp_path / "s"), seconds=30, what="the third run")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert (
        err.splitlines()[-1] == f"servetop: interrupted: to continue after pair 1, add --into {tmp_path / 's'} --resume"
    )
    kept = (tmp_path / "s" / "a-001.servetop").stat().st_mtime_ns
    done = servetop(*command, "--resume")
    assert done.code == 0, done.err
    assert "worse" in done.out
    assert (tmp_path / "s" / "a-001.servetop").stat().st_mtime_ns == kept


def test_too_small_a_budget_cannot_tell(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("run-pairs", *LOAD, *SLOWER, "--into", str(tmp_path / "s"), "--budget", "1s")
    assert done.code == 98, done.err
    assert done.complaint.startswith("cannot tell TTFT mean within the budget of 1 s")
    assert "1 pair in" in done.out


def test_too_few_requests_are_said_to_be_too_few(servetop: Servetop, tmp_path: Path) -> None:
    few = ("--request-rate", "60", "--num-prompts", "12", "--input-len", "32", "--output-len", "16")
    done = servetop("run-pairs", *few, *SLOWER, "--into", str(tmp_path / "s"))
    assert done.code == 98, done.err
    assert "send more requests (a stage needs 16 or more), or choose others with --metric" in done.err


def test_an_engine_that_does_not_start_ends_the_series(servetop: Servetop, tmp_path: Path) -> None:
    command = ("run-pairs", *LOAD, "--a", "--engine vllm --engine-command false", "--into", str(tmp_path / "s"))
    done = servetop(*command)
    assert done.code == 3, done.err
    assert done.err.count("this run does not count: ") == 2
    assert done.complaint.startswith("vLLM did not start")
    assert names(tmp_path / "s") == []
    assert len(names(tmp_path / "s" / "discarded")) == 2
