"""What happened, and what the exit code, the last line and the recording say of it."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from servetop.recordings.reader import RecordingReader
from tests.harness import RAN, Servetop, opened, received, wait_for

pytestmark = pytest.mark.integration

MORTAL = Path(__file__).parent / "mortal_server.py"
STEADY = ("--request-rate", "10", "--num-prompts", "40", "--input-len", "8", "--output-len", "16")
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can limit another process's files")
@pytest.mark.parametrize("again", [False, True], ids=["stays full", "has space again"])
def test_a_disk_that_is_full_is_told_and_the_summary_has_everything(
    servetop: Servetop, tmp_path: Path, again: bool
) -> None:
    recording = tmp_path / "run.servetop"
    with servetop.started("--json", *STEADY, "--record", str(recording)) as process:
        begun(recording)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        first = read_until(process, "cannot be written")
        if again:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        out, err = process.communicate(timeout=60)
    summary = json.loads(out)
    assert (first + err).count("cannot be written (") == (1 if again else 2), err  # when it happens, and at the end
    assert summary["completed"] == 40
    if again:
        assert process.returncode in RAN, err
        assert summary["recording_state"] == "finished"
        assert RecordingReader.open(recording).request_count() == 40
        return
    assert process.returncode == 1
    lost = summary["not_recorded"]
    assert f"{lost['ticks']} ticks, {lost['requests']} requests not recorded" in err.splitlines()[-1]
    assert lost["requests"] + RecordingReader.open(recording).request_count() == 40


def test_a_recording_whose_folder_is_removed_is_told_and_the_summary_has_everything(
    servetop: Servetop, tmp_path: Path
) -> None:
    recording = tmp_path / "night" / "run.servetop"
    with servetop.started("--json", *STEADY, "--record", str(recording)) as process:
        begun(recording)
        shutil.rmtree(recording.parent)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(out)["completed"] == 40
    assert err.count("was removed while it was written") == 2
    assert "40 requests not recorded" in err.splitlines()[-1]


def begun(recording: Path) -> None:
    """The first tokens have come."""
    reader = wait_for(lambda: opened(recording), seconds=20, what="the recording")
    wait_for(lambda: received(reader), seconds=30, what="the first tokens")
    reader.close()


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """The first lines on stderr, up to one with these words."""
    assert process.stderr is not None
    lines = [""]
    while words not in lines[-1]:
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    return "".join(lines)
