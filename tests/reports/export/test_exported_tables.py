"""Exported tables hold every recorded field, and the figures of the summary follow from their rows."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import itertools
import json
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.errors import UsageError
from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.export.exported_tables import TABLES, table_rows, tables_page
from servetop.reports.export.row_formats import csv_text, json_lines
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import stage

PAGE = Path(__file__).parents[3] / "docs/reference/exported-tables.md"
GOLDEN = Path(__file__).parents[2] / "golden"
MakeRequest = Callable[..., RequestRecord]


@pytest.fixture(scope="module")
def sample() -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        yield reader


def rows_of(reader: RecordingReader, table: str) -> list[dict[str, str]]:
    """The rows of a table as Python's own reader of CSV gives them."""
    text = "".join(csv_text(TABLES[table].columns, table_rows(reader, table)))
    return list(csv.DictReader(io.StringIO(text, newline="")))


def objects_of(reader: RecordingReader, table: str) -> list[dict[str, Any]]:
    columns = (*TABLES[table].columns, *TABLES[table].lists)
    return [json.loads(line) for line in "".join(json_lines(columns, table_rows(reader, table))).splitlines()]


def test_the_page_of_columns_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == tables_page(), "run `make schema`"


def test_the_names_of_columns_are_unique_in_their_table() -> None:
    for table in TABLES.values():
        names = [each.name for each in (*table.columns, *table.lists)]
        assert len(set(names)) == len(names)


def test_the_columns_of_requests_and_ticks_leave_out_no_recorded_field() -> None:
    def reads(value: Any) -> str:
        return str(value.__reduce__()[1][0]) if isinstance(value, operator.attrgetter) else ""

    requests = TABLES["requests"]
    read = {reads(each.value) for each in (*requests.columns, *requests.lists)}
    computed = {"chunk_times", "chunk_tokens"}
    assert {each.name for each in dataclasses.fields(RequestRecord)} - computed <= {
        each.removeprefix("request.") for each in read
    }
    ticks = {reads(each.value) for each in TABLES["ticks"].columns}
    histograms = {each.name for each in dataclasses.fields(ClientTick) if each.type == "LogHistogram"}
    counts = {f"client.{each.name}" for each in dataclasses.fields(ClientTick) if each.name not in histograms}
    assert counts - {"client.gauges"} <= ticks
    assert {f"client.gauges.{each.name}" for each in dataclasses.fields(LoadGauges)} <= ticks


@pytest.mark.parametrize("metric", ["ttft", "tpot", "e2el"])
def test_percentiles_of_the_exported_requests_are_those_of_the_summary(sample: RecordingReader, metric: str) -> None:
    rows = [each for each in rows_of(sample, "requests") if each["counted"] == "true" and each["status"] == "ok"]
    values = [float(each[f"{metric}_s"]) for each in rows if each[f"{metric}_s"]]
    latency = run_summary(sample).measured.requests.latencies[metric]
    assert latency.mean == pytest.approx(np.mean(values) * 1e3, rel=1e-12)
    for name, expected in latency.percentiles.items():
        assert expected == pytest.approx(np.percentile(values, float(name[1:])) * 1e3, rel=1e-12)


def test_inter_token_latencies_of_the_exported_chunks_are_those_of_the_summary(sample: RecordingReader) -> None:
    gaps: list[float] = []
    for row in objects_of(sample, "requests"):
        if row["counted"] and row["status"] == "ok":
            between = np.diff(row["chunk_times_s"]) / row["chunk_tokens"][1:]
            gaps += np.repeat(between, row["chunk_tokens"][1:]).tolist()
    latency = run_summary(sample).measured.requests.latencies["itl"]
    assert latency.mean == pytest.approx(np.mean(gaps) * 1e3, rel=1e-9)
    assert latency.percentiles["p99"] == pytest.approx(np.percentile(gaps, 99) * 1e3, rel=1e-9)


def test_totals_of_the_exported_ticks_and_stages_are_those_of_the_requests(sample: RecordingReader) -> None:
    requests, ticks, stages = (rows_of(sample, each) for each in ("requests", "ticks", "stages"))
    assert sum(int(each["ok_requests"]) for each in ticks) == sum(each["status"] == "ok" for each in requests)
    assert sum(int(each["output_tokens"]) for each in ticks) == sum(int(each["output_tokens"]) for each in requests)
    for row in stages:
        of_stage = [each for each in requests if each["stage"] == row["stage"]]
        assert int(row["ended_requests"]) == len(of_stage)
        served = [float(each["ttft_s"]) for each in of_stage if each["status"] == "ok"]
        assert float(row["ttft_p99_s"]) == pytest.approx(np.percentile(served, 99), rel=1e-12)


def test_engine_samples_are_exported_as_recorded(sample: RecordingReader) -> None:
    rows = rows_of(sample, "engine")
    samples = sample.engine_samples()
    assert [float(each["kv_usage_ratio"]) for each in rows] == [each.kv_usage for each in samples]
    assert {each["tpot_seconds_total"] for each in rows} == {""}  # recorded before format 1.9: unknown, not 0


def test_requests_of_a_warm_up_and_of_a_cool_down_are_not_counted(tmp_path: Path, make_request: MakeRequest) -> None:
    header = RunHeader(config=RunConfig(cooldown=2.0), anchor=ClockAnchor(origin_ns=0, wall_epoch_s=0.0))
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    requests = [make_request(number, float(number), stage=number // 5) for number in range(10)]
    stages = [stage(0, 0.0, warmup=True), stage(1, 5.0)]
    recorder.commit(TickTransaction(requests=requests, stages=stages))
    recorder.close(RunEnd(at=10.0, exit_code=0, reason=""))
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        rows = rows_of(reader, "requests")
        total = run_summary(reader).measured.requests.num_prompts
    assert [each["id"] for each in rows if each["counted"] == "true"] == ["5", "6"]
    assert total == 2


def test_a_recording_without_rows_says_why() -> None:
    with (
        contextlib.closing(RecordingReader.open(GOLDEN / "without_metrics.servetop")) as reader,
        pytest.raises(UsageError, match=r"without_metrics has no rows for --table engine: .* never read"),
    ):
        table_rows(reader, "engine")


def test_rows_are_read_while_they_are_written(sample: RecordingReader) -> None:
    rows = table_rows(sample, "requests")
    parts = json_lines(TABLES["requests"].columns, rows)
    first = next(parts).splitlines()
    assert len(first) < sample.request_count()
    assert len(first) + len(list(itertools.chain(rows))) == sample.request_count()
