"""The lines of an answer on the terminal."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.report.report import print_recording
from servetop.cli.report.search_lines import search_lines
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.run.search.search_answer import AnswerKind, TierAnswer
from servetop.run.search.search_result import Confirmation, SearchResult, search_result
from tests.run.search.searches import FOUND, record, setup


def lines_of(path: Path, answer: TierAnswer = FOUND, **changes: Any) -> list[str]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        result: SearchResult = search_result(reader, run_summary(reader), setup=setup(answer=answer))
    return search_lines(dataclasses.replace(result, recording="run.servetop", **changes))


def test_the_answer_has_its_price_and_what_binds(tmp_path: Path) -> None:
    lines = lines_of(record(tmp_path / "run.servetop", 2.0, prices=("$2.5/h",)), cost_per_million_output_tokens=0.31)
    assert lines[0].endswith(
        " serves 11.2 req/s [10.9, 11.5] within p99 TTFT ≤ 500 ms, for $0.310 per million output tokens at 2 req/s"
        " (p99 TTFT ≤ 500 ms is missed above it)"
    )
    assert lines[1:] == ["load       0:08 of 1:00, 1 probe"]


def test_an_unknown_load_has_no_price(tmp_path: Path) -> None:
    wide = dataclasses.replace(FOUND, kind=AnswerKind.WIDE, low=8.0, high=13.0)
    lines = lines_of(record(tmp_path / "run.servetop", 2.0, prices=("$2.5/h",)), wide)
    assert lines[0].endswith(" within p99 TTFT ≤ 500 ms is not resolved: 8 to 13 req/s")


@pytest.mark.parametrize(("kept", "label"), [(True, "confirmed"), (False, "not kept")])
def test_a_confirmation_says_whether_the_objectives_were_kept(tmp_path: Path, kept: bool, label: str) -> None:
    confirmation = Confirmation(load=10.0, seconds=8.0, seen=(), kept=kept, text="10 req/s for 0:08: …")
    lines = lines_of(record(tmp_path / "run.servetop", 2.0), confirmation=confirmation)
    assert lines[1] == f"{label:10} 10 req/s for 0:08: …"


def test_warnings_and_the_way_to_continue_follow(tmp_path: Path) -> None:
    lines = lines_of(record(tmp_path / "run.servetop", 2.0), warnings=("other traffic: about 40%",), complete=False)
    assert lines[1:] == [
        "warning    other traffic: about 40%",
        "load       0:08 of 1:00, 1 probe",
        "unfinished to continue: servetop search --resume run.servetop",
    ]


def test_the_summary_of_a_search_begins_with_its_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path / "run.servetop", 2.0)
    assert print_recording(str(path), as_json=False) == 0
    out = capfd.readouterr().out
    assert out.startswith("answer     ")
    assert "Request throughput" in out
