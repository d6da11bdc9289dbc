"""The tables of a watch have rows of what the engine exports, and no others."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.exported.exported_summary import ExportedMetric
from servetop.cli.inspection.recordings_list import print_recordings
from servetop.cli.report.watch_report import print_watch
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.watch_rows import SERVER_COLUMNS, latency_rows, server_row, total_rows
from servetop.reports.summary.watch_summary import watch_summary
from tests.analysis.test_watched_signals import ticks
from tests.recorded_watches import watch_of_one, watch_of_pages, watch_of_three
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


def test_the_error_rate_of_several_servers_is_that_of_those_that_count_failures(tmp_path: Path) -> None:
    with closing(RecordingReader.open(watch_of_three(tmp_path / "w.servetop"))) as reader:
        summary = watch_summary(reader)
    assert dict(total_rows(summary))["Error rate"] == "not counted"
    first, *others = summary.replicas or ()
    assert summary.watched is not None
    assert first.watched is not None
    counted: dict[str, Any] = {"requests_ended": 4000.0, "requests_failed": 1.0, "error_rate": 1 / 4000}
    first = replace(first, watched=replace(first.watched, **counted))
    some = replace(summary, watched=replace(summary.watched, **counted), replicas=(first, *others))
    assert dict(total_rows(some))["Error rate"] == "<0.1 % (1 of 4,000 requests, of the 1 of 3 servers that count them)"
    errors = SERVER_COLUMNS.index("errors") + 1
    assert [server_row(each)[errors] for each in some.replicas or ()] == ["<0.1 %", "–", "–"]


@pytest.mark.parametrize(
    ("slow_from", "texts"), [(20.0, ["500–1,000"] * 2), (40.0, ["≤100", "852"]), (60.0, ["≤100"] * 2)]
)
def test_quantiles_in_one_bucket_have_its_bounds(slow_from: float, texts: list[str], tmp_path: Path) -> None:
    path = watch_of_pages(tmp_path / "w.servetop", every=1.0, seconds=60.0, slow_from=slow_from)
    with closing(RecordingReader.open(path)) as reader:
        rows = latency_rows(watch_summary(reader))
    (row,) = (row for row in rows if row[0] == "TTFT")
    assert row[2:] == texts


def test_the_mean_itl_is_that_of_the_histogram(tmp_path: Path) -> None:
    with closing(RecordingReader.open(watch_of_one(tmp_path / "w.servetop"))) as reader:
        summary = watch_summary(reader)
    metric = ExportedMetric(
        group="latency", name="ITL", label=None, series="vllm:inter_token_latency_seconds", kind="quantiles", unit="s",
        value=0.0175, p90=0.0235, above=0.01, up_to=0.025, mean=0.0133,
    )  # fmt: skip
    rows = latency_rows(replace(summary, engine_metrics=(metric,)))
    assert ["ITL", "13.3", "10.0–25.0", "10.0–25.0"] in rows


def test_the_list_of_recordings_marks_a_watch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch_of_one(tmp_path / "w.servetop")
    assert print_recordings(tmp_path, as_json=True) == 0
    (info,) = json.loads(capsys.readouterr().out)
    assert (info["watch"], info["requests"]) == (True, 0)
    print_recordings(tmp_path, as_json=False)
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.split() == ["w", "vllm", "tiny", "1:00", "watch", "–", "ok"]
