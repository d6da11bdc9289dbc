"""A recording as Python reads it: the results of the commands, without their printing."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop import api
from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.reports.summary.summary import run_summary
from servetop.run.search.result_page import recording_html
from tests.judgement.brief_recordings import record_briefly
from tests.run.search.searches import record


def test_results_are_those_of_the_commands() -> None:
    with api.open_recording("sample:overload") as recording:
        assert recording.summary() == run_summary(recording.reader)
        assert recording.story() == recording.summary().story
        assert recording.report().startswith(recording_html("sample:overload")[:200])
        assert recording.config.workload == recording.reader.header.config.workload
        assert recording.damage is None


def test_each_table_has_its_rows(tmp_path: Path) -> None:
    path = record_briefly(tmp_path / "run.servetop", StageConfig(request_rate=20.0, duration=5.0))
    with api.open_recording(path) as recording:
        tables = (recording.requests(), recording.ticks(), recording.stages(), recording.engine(), recording.gpu())
        assert [each.name for each in tables] == ["requests", "ticks", "stages", "engine", "gpu"]
        assert [len(each) > 0 for each in tables] == [True, True, True, True, False]
        assert len(tables[0]) == recording.summary().requests.num_prompts


def test_a_search_has_answers_and_another_run_has_none(tmp_path: Path) -> None:
    with api.open_recording(record(tmp_path / "search.servetop", 2.0, 5.0)) as recording:
        (tier,) = recording.answers().tiers
        assert tier.slo == "p99_ttft<500ms"
    with (
        api.open_recording("sample:overload") as other,
        pytest.raises(UsageError, match="not the recording of a search"),
    ):
        other.answers()


def test_a_notebook_shows_the_verdict_and_runs_no_text_of_a_recording(tmp_path: Path) -> None:
    path = record_briefly(tmp_path / "<b>run.servetop", StageConfig(request_rate=20.0, duration=5.0))
    with api.open_recording(path) as recording:
        shown = recording._repr_html_()
    assert "verdict" in shown
    assert "<b>" not in shown
    assert "&lt;b&gt;run" in shown


def test_an_export_is_that_of_the_command(tmp_path: Path) -> None:
    with api.open_recording("sample") as recording:
        (written,) = recording.export("csv", tmp_path / "requests.csv")
        assert written == tmp_path / "requests.csv"
        assert written.read_text(encoding="utf-8").count("\n") == recording.reader.request_count() + 1
        folder = tmp_path / "several"
        paths = recording.export("vllm", folder)
        assert len(paths) > 1
        assert {each.parent for each in paths} == {folder}
        assert recording.export("jsonl", folder, table="stages") == [folder / f"{recording.reader.name}-stages.jsonl"]
        with pytest.raises(UsageError, match="is a recording by its suffix"):
            recording.export("csv", recording.path)
        with pytest.raises(UsageError, match="no format is called no-such: use csv, jsonl"):
            recording.export("no-such", tmp_path / "x")
