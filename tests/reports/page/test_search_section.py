"""The page of a search has every load with its figures, the answer at each decision, and the printed sentences."""

from __future__ import annotations

import contextlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.main import main
from servetop.recordings.format.schema import SEARCH_STATE
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.html_text import json_text
from servetop.reports.page.report_page import recorded_search
from servetop.reports.page.search_section import search_data, search_section
from servetop.tui.state.search_progress import SearchHistory, SearchProgress
from tests.judgement.recorded_search import record_search
from tests.judgement.searched_servers import draw_case
from tests.tui.canned_search import SEARCH, STATES


def canned(known: float = 100.0) -> SearchProgress:
    history = SearchHistory(SEARCH)
    history.fold(STATES)
    found = history.at(known, stages=(), notes=())
    assert found is not None
    return found


def rows_of(text: str) -> list[list[str]]:
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", text)]


def test_each_load_is_a_row_with_its_figures() -> None:
    head, *rows = rows_of(str(search_section(canned())))
    assert head == ["req/s", "from", "for", "purpose", "p90 TTFT ≤ 500 ms", "p99 ITL ≤ 50 ms"]
    assert [row[0] for row in rows] == ["4", "20", "7", "14", "13.9"]
    assert rows[1][1:5] == ["0:15", "0:15", "queue grows", "80 % [60, 90] of 300 ✗"]
    assert rows[0][5] == "0.111 % [0, 2] of 1,800 ○"
    assert rows[2][3:] == ["recovery", "", ""]
    assert rows[4][3:5] == ["confirmation", "5.77 % [2, 9] of 208 ●"]


def test_loads_before_a_restart_are_rows_without_points() -> None:
    progress = replace(canned(), uncounted=2)
    rows = rows_of(str(search_section(progress)))[1:]
    assert [row[3] for row in rows[:2]] == ["not counted", "not counted"]
    data: Any = search_data(progress)
    assert [each["load"] for each in data["loads"]] == [7.0, 14.0, 13.9]


def test_the_script_gets_the_loads_and_the_answer_at_each_decision() -> None:
    data: Any = json.loads(json_text(search_data(canned())))
    assert [each["at"] for each in data["states"]] == [0.0, 15.0, 30.0, 45.0, 60.0, 75.0]
    assert [each["answers"][0] for each in data["states"]][:3] == [
        {"low": None, "high": None}, {"low": 4.0, "high": None}, {"low": 6.0, "high": 20.0},
    ]  # fmt: skip
    assert data["loads"][1]["figures"][0] == {
        "value": 0.8, "low": 0.6, "high": 0.9, "counted": 300, "verdict": "missed",
    }  # fmt: skip
    assert data["objectives"][0] == {"label": "p90 TTFT ≤ 500 ms", "allowed": 0.1, "meanLimit": None}


def test_a_mean_is_in_seconds_and_its_unknown_end_is_none() -> None:
    figure = replace(STATES[1].loads[0].figures[0], mean=0.143, low=0.1, high=math.inf)
    load = replace(STATES[1].loads[0], figures=(figure,))
    progress = replace(canned(), loads=(load,))
    data: Any = search_data(progress)
    assert (data["loads"][0]["figures"][0]["value"], data["loads"][0]["figures"][0]["high"]) == (0.143, None)
    assert "143 ms of 60 ●" in str(search_section(progress))


def test_other_runs_and_old_recordings_have_no_charts() -> None:
    assert search_section(None) is None
    assert search_data(None) is None
    old = replace(canned(), states=())
    assert search_data(old) is None
    assert "before 1.16" in str(search_section(old))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "search.servetop"
    record_search(path, draw_case("closed loop", 21), seed=1, budget=60.0, cuts={})
    return path


def test_a_recorded_search_has_the_states_of_its_recording(recording: Path) -> None:
    with contextlib.closing(RecordingReader.open(recording)) as reader:
        progress, states = recorded_search(reader), list(reader.stream(SEARCH_STATE))
    assert progress is not None
    assert progress.states == tuple(states)
    assert len(progress.loads) == len({load.number for state in states for load in state.loads}) >= 3


def test_the_report_of_a_search_begins_with_what_the_summary_prints(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summary", str(recording)]) == 0
    printed = [
        line for line in capsys.readouterr().out.splitlines() if re.match("answer|confirmed|not kept|load", line)
    ]
    assert main(["report", str(recording), "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<h1>{printed[0].removeprefix('answer     ')}</h1>" in text
    assert printed[-1].startswith("load       ")
    assert f"Load: {printed[-1].removeprefix('load       ')}</p>" in text
    assert "servetop rerun" not in text
    assert main(["report", str(recording), "-o", str(tmp_path / "page.md")]) == 0
    first = (tmp_path / "page.md").read_text(encoding="utf-8").splitlines()[0]
    assert first.replace("\\", "") == f"**{printed[0].removeprefix('answer     ')}**"
