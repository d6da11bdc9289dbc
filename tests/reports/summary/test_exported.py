"""The summary of the engine page's metrics: from the start of the load, without warm-ups, through restarts."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.core.events import RunEnd, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import change

NAMES = ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total", "vllm:num_preemptions_total",
         "vllm:num_requests_waiting_by_reason{reason=capacity}")  # fmt: skip
VLLM = EngineFacts(name="vllm", title="vLLM")


def stage(at: float, index: int, *, warmup: bool = False) -> StageChange:
    return StageChange(
        at=at, index=index, label="8 req/s", request_rate=8.0, max_concurrency=None, max_num_seqs=None, warmup=warmup
    )


def summary_of(path: Path, header: RunHeader, scrapes: Sequence[tuple[float, Sequence[float]]]) -> dict[str, Any]:
    recorder = Recorder.create(path, replace(header, engine=VLLM))
    series = [SeriesScrape(at=at, names="\n".join(NAMES), numbers=pack_numbers(row)) for at, row in scrapes]
    recorder.commit(TickTransaction(stages=[stage(5.0, 0, warmup=True), stage(10.0, 1)], engine_series=series))
    recorder.close(RunEnd(at=40.0, exit_code=0, reason=""))
    with contextlib.closing(RecordingReader.open(path)) as reader:
        return summary_json(run_summary(reader))


def test_metrics_count_from_the_load_after_the_warm_up_and_through_a_restart(tmp_path: Path, header: RunHeader) -> None:
    summary = summary_of(
        tmp_path / "run.servetop",
        header,
        [(1.0, (0, 0, 0, 0)), (9.5, (900, 1000, 0, 4)), (20.0, (910, 1100, 0, 6)), (30.0, (5, 100, 0, 2))],
    )
    found = {(each["name"], each["label"]): each for each in summary["engine_metrics"]}
    hits = found["tokens found", None]
    assert hits["value"] == pytest.approx((10 + 5) / (100 + 100))  # the restart set both to 0
    assert (hits["series"], hits["kind"], hits["unit"]) == ("vllm:prefix_cache_hits_total", "ratio", "share")
    assert "p90" not in hits
    assert found["waiting", "capacity"]["value"] == 4.0  # the mean of 6 and 2
    assert ("draft tokens accepted", None) not in found


def test_a_recording_of_an_older_format_has_no_such_part(tmp_path: Path, header: RunHeader) -> None:
    path = tmp_path / "run.servetop"
    assert "engine_metrics" not in summary_of(path, header, [])
    change(path, "DROP TABLE engine_series", "PRAGMA user_version = 1005")
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert "engine_metrics" not in summary_json(run_summary(reader))


def test_a_single_scrape_and_a_damaged_one_give_unknown_values(tmp_path: Path, header: RunHeader) -> None:
    first = summary_of(tmp_path / "one.servetop", header, [(20.0, (900, 1000, 0, 4))])
    assert {each["value"] for each in first["engine_metrics"]} == {None}
    path = tmp_path / "two.servetop"
    summary_of(path, header, [(20.0, (900, 1000, 0, 4)), (30.0, (950, 1100, 0, 4))])
    change(path, "UPDATE engine_series SET numbers = x'00' WHERE seq = 2")
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert {each["value"] for each in summary_json(run_summary(reader))["engine_metrics"]} == {None}
