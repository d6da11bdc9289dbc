"""The tables of a watch have rows of what the engine exports, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servetop.cli.inspection.recordings_list import print_recordings
from servetop.cli.report.watch_report import print_watch
from tests.analysis.test_watched_signals import ticks
from tests.recorded_watches import watch_of_one
from tests.reports.summary.test_watch_summary import recorded_watch


def test_what_is_not_exported_has_no_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded_watch(tmp_path, ticks(waiting=30.0)) as reader:
        print_watch(reader, as_json=False)
    printed = capsys.readouterr().out
    rows = [line.split("  ")[0].strip() for line in printed.splitlines() if line.strip()]
    assert "Peak waiting" in rows
    assert {"Requests finished", "KV blocks", "E2EL", "Without metrics"}.isdisjoint(rows)
    assert "TTFT  " in printed
    assert "verdict    batch-bound for 0:20 of 1:00" in printed
    assert "0:2" in printed.partition("verdict")[2], "the onset has its time"


def test_the_list_of_recordings_marks_a_watch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch_of_one(tmp_path / "w.servetop")
    assert print_recordings(tmp_path, as_json=True) == 0
    (info,) = json.loads(capsys.readouterr().out)
    assert (info["watch"], info["requests"]) == (True, 0)
    print_recordings(tmp_path, as_json=False)
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.split() == ["w", "vllm", "tiny", "1:00", "watch", "–", "ok"]
