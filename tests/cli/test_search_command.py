"""`servetop search` as a user runs it, on the simulator."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from servetop.core.events import Action, Severity
from servetop.core.interfaces.search_state import SEARCH_REFUSES
from servetop.recordings.read.reader import RecordingReader
from tests.harness import CommandInProcess, Servetop, opened, wait_for

ANSWERED = (0, 98, 99)
"""Exit codes of a search that came to its end; which one it is depends on the speed of this machine."""
SEARCH = (
    "search", "--engine", "sim", "--max-num-seqs", "4", "--input-len", "32", "--output-len", "16",
    "--slo", "ttft<300ms@90%", "--low", "2", "--high", "50", "--budget", "20s",
)  # fmt: skip


def loads(path: Path) -> int:
    """Number of loads that were kept so far."""
    reader = opened(path)
    if reader is None:
        return 0
    with contextlib.closing(reader):
        return sum(stage.request_rate is not None for stage in reader.stages())


def replies(reader: RecordingReader) -> list[str]:
    """The replies to all commands so far."""
    return [each.reply or "" for each in reader.commands()]


@pytest.mark.integration
def test_a_search_that_is_killed_continues_where_it_was(servetop: Servetop, tmp_path: Path) -> None:
    path = tmp_path / "search.servetop"
    with servetop.started(*SEARCH, "--json", "--record", str(path)) as process:
        wait_for(lambda: loads(path) >= 2 or process.poll() is not None, seconds=60, what="the second load")
        process.kill()  # a headless run is a run process
        process.communicate(timeout=60)
    killed = servetop("summary", str(path))
    assert "unfinished to continue: servetop search --resume" in killed.out
    done = servetop("search", "--resume", str(path), "--json")
    assert done.code in ANSWERED, done.err
    result = done.summary
    assert result["complete"]
    assert result["recording"] == str(path)
    assert [tier["slo"] for tier in result["tiers"]] == ["ttft<300ms@90%"]
    assert result["seconds"] <= 20 * 1.5
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages = [stage for stage in reader.stages() if stage.request_rate is not None]
        assert reader.header.config.search is not None
        assert [note.text for note in reader.notes() if note.severity is Severity.ERROR] == []
        expected = reader.header.config.search.prior
    assert expected is not None
    assert stages[0].request_rate == pytest.approx(max(2.0, expected / 2), rel=1e-3)
    assert result["probes"] == len(stages)
    assert [stage.index for stage in stages] == sorted({stage.index for stage in stages})
    again = servetop("search", "--resume", str(path))
    assert again.code == done.code
    assert "nothing to resume" in again.err


@pytest.mark.integration
def test_an_interrupted_search_prints_the_answer_so_far(servetop: Servetop, tmp_path: Path) -> None:
    path = tmp_path / "search.servetop"
    with servetop.started(*SEARCH, "--headless", "--record", str(path)) as process:
        wait_for(lambda: loads(path) >= 2 or process.poll() is not None, seconds=60, what="the second load")
        with contextlib.closing(RecordingReader.open(path)) as reader:
            reader.send(Action.SET_MAX_NUM_SEQS, value=8)
            wait_for(lambda: SEARCH_REFUSES in replies(reader), seconds=60, what="the refusal of another batch size")
        process.send_signal(2)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out.startswith("answer     ")
    assert f"servetop search --resume {path}" in out
    assert "next " in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--low", "1"), "a search needs an objective: add --slo"),
        (("--slo", "p99_ttft<500"), "500 of what? write 500ms or 500s"),
        (("--slo", "p99_ttft<500ms", "--request-rate", "8"), "--request-rate: the search chooses the load"),
        (("--slo", "p99_ttft<500ms", "--max-failures", "2%"), "use --slo 'error_rate<1%'"),
        (("--slo", "p99_ttft<500ms", "--low", "9", "--high", "3"), "leave no load to try"),
        (("--slo", "p99_ttft<500ms", "--low", "0"), "--low 0 is not a load: give a number above 0"),
        (("--slo", "p99_ttft<500ms", "--budget", "5s"), "too short for one load: give at least 10s"),
        (("--slo", "p99_ttft<500ms", "--prior", "0"), "--prior 0 is not a load: give a number above 0, or --no-prior"),
        (("--slo", "p99_ttft<500ms", "--prior", "8", "--no-prior"), "--prior and --no-prior exclude each other"),
        (("--slo", "goodput>95%"), "goodput of what? add --goodput"),
        (("--slo", "p99_ttft<500ms", "--over", "users"), "--over"),
        (("--resume", "latest", "--slo", "p99_ttft<500ms"), "--slo: --resume takes everything from the recording"),
    ],
)
def test_a_search_that_cannot_work_is_refused_in_one_line(
    command: CommandInProcess, words: tuple[str, ...], hint: str
) -> None:
    done = command("search", *words, "--headless")
    assert done.code == 2
    assert hint in done.complaint
