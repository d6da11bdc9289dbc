"""The whole command `servetop compare`: output, exit codes, and a run that is still running."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from servetop.core.config import StageConfig
from tests.harness import Servetop, opened, wait_for
from tests.judgement.brief_recordings import record_briefly

pytestmark = pytest.mark.integration

LOAD = StageConfig(request_rate=20.0, duration=15.0)
WORDS = ("--headless", "--request-rate", "40", "--input-len", "8", "--output-len", "2", "--seed", "1")


@pytest.fixture
def recorded(servetop: Servetop) -> Path:
    """The folder of two recordings of which the second is slower, and a third of longer prompts."""
    servetop.folder.mkdir()
    record_briefly(servetop.folder / "main.servetop", LOAD)
    record_briefly(servetop.folder / "new.servetop", LOAD, settings={"c0": "0.004"})
    record_briefly(servetop.folder / "long.servetop", LOAD, input_len=64)
    return servetop.folder


def test_recordings_are_named_as_elsewhere_and_the_result_is_on_stdout(servetop: Servetop, recorded: Path) -> None:
    done = servetop("compare", "main", str(recorded / "new.servetop"))
    assert (done.code, done.err) == (0, "")
    assert "B is worse: " in done.out
    assert servetop("compare", "main", "new", "--markdown").out.startswith("**B is worse: ")
    found = json.loads(servetop("compare", "main", "new", "--json").out)
    assert found["comparisons"][0]["verdict"] == "worse"


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("main", "long"), 2, "servetop: A and B have different workloads: workload.input_len is 32 and 64: "),
        (("main", "main"), 2, "is given twice"),
        (("main",), 2, "two configurations or more"),
        (("main", "absent"), 1, "servetop: no such recording: absent"),
        (("main", "new", "--metric", "odd"), 2, "servetop: --metric odd: use one of output_throughput, "),
        (("main", "new", "--margin", "output_throughput"), 2, "use KEY=VALUE, as in output_throughput=2%"),
    ],
)
def test_what_cannot_be_compared_has_one_line_and_an_exit_code(
    servetop: Servetop, recorded: Path, words: tuple[str, ...], code: int, complaint: str
) -> None:
    done = servetop("compare", *words)
    assert done.code == code
    assert complaint in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_a_run_that_is_still_running_is_compared_so_far_with_a_warning(servetop: Servetop) -> None:
    done, running = (servetop.folder / f"{name}.servetop" for name in ("done", "running"))
    assert servetop(*WORDS, "--num-prompts", "80", "--record", str(done)).code == 0
    with servetop.started(*WORDS, "--duration", "60", "--record", str(running)):
        wait_for(lambda: _ended(running) >= 40, seconds=20, what="40 requests")
        found = json.loads(servetop("compare", "done", "running", "--json").out)
    (result,) = found["comparisons"]
    assert result["warnings"] == ["B (running) is still running: what it has measured so far is compared"]
    assert result["b"]["running"] is True


def _ended(recording: Path) -> int:
    reader = opened(recording)
    if reader is None:
        return 0
    with contextlib.closing(reader):
        return reader.request_count()
