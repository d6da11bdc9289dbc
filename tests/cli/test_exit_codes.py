"""What happened, and what the exit code, the last line and the recording say of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servetop.recordings.reader import RecordingReader
from tests.harness import Servetop

pytestmark = pytest.mark.integration

MORTAL = Path(__file__).parent / "mortal_server.py"
LOAD = ("--request-rate", "inf", "--num-prompts", "20", "--input-len", "8", "--output-len", "4")


def mortal(*words: str) -> tuple[str, ...]:
    """Options that start the failing engine."""
    return (
        "--engine", "vllm", "--model", "a/tiny", "--engine-command", f"{sys.executable} {MORTAL} {' '.join(words)}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fail_every", "words", "code"),
    [(1, (), 1), (2, (), 1), (10, (), 1), (10, ("--max-failures", "2"), 0), (2, ("--max-failures", "50%"), 0)],
    ids=["all", "half", "a tenth", "a tenth, as allowed", "half, as allowed"],
)
def test_more_failed_requests_than_allowed_are_exit_code_1_with_the_most_frequent_reason(
    servetop: Servetop, fail_every: int, words: tuple[str, ...], code: int
) -> None:
    done = servetop("--json", *mortal(f"--fail-every {fail_every}"), *LOAD, *words)
    assert done.code == code, done.err
    (reason,) = done.summary["failures"]
    assert reason["count"] == done.summary["failed"] == 20 // fail_every
    assert "no luck" in reason["reason"]
    if code:
        assert reason["reason"] in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    "death", ["--die-after -1", "--die-at 5", "--die-at 20", "--die-after 20"],
    ids=["before the load", "during the load", "with the last request", "after the load"],
)  # fmt: skip
def test_an_engine_that_dies_is_exit_code_3_whenever_it_dies(servetop: Servetop, tmp_path: Path, death: str) -> None:
    recording = tmp_path / "run.servetop"
    done = servetop("--json", *mortal(death), *LOAD, "--record", str(recording))
    assert done.code == 3, done.err
    assert "killed by SIGKILL" in done.complaint
    end = RecordingReader.open(recording).end
    assert end is not None
    assert end.exit_code == 3
