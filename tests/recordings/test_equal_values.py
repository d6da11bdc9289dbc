"""Columns with one value in all rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.read.equal_values import equal_request_values
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change
from tests.recordings.test_load_requests import golden

COLUMNS = ("worker", "status", "error", "http_status", "due")


@pytest.mark.parametrize(
    ("statement", "equal"),
    [
        ("UPDATE request SET worker = 4, status = 'ok', error = NULL, http_status = 200",
         {"worker": 4, "status": "ok", "error": None, "http_status": 200}),
        ("UPDATE request SET worker = id % 2, status = 'ok', error = NULL, http_status = nullif(200, 200 + id - 3)",
         {"status": "ok", "error": None}),
        ("UPDATE request SET worker = 4, status = 'ok', error = nullif('odd', 'od' || char(100 + (id = 9))), "
         "http_status = NULL", {"worker": 4, "status": "ok", "http_status": None}),
        ("DELETE FROM request", {}),
    ],
)  # fmt: skip
def test_a_column_is_equal_if_no_row_differs(tmp_path: Path, statement: str, equal: dict[str, object]) -> None:
    path = golden("vllm", tmp_path)
    change(path, statement)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert equal_request_values(reader.tables, COLUMNS) == equal


def test_a_column_that_differs_only_in_the_last_of_many_rows_is_not_equal(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    requests = [make_request(each, each / 100, worker=each // 2_999, replica=3) for each in range(3_000)]
    recorder.commit(TickTransaction(requests=requests))
    recorder.close(RunEnd(at=30.0, exit_code=0, reason=""))
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        assert equal_request_values(reader.tables, ("worker", "replica", "id")) == {"replica": 3}


def test_a_column_that_an_older_file_lacks_is_unknown_in_all_rows(tmp_path: Path) -> None:
    path = golden("vllm", tmp_path)
    change(path, "DROP VIEW IF EXISTS counted_request", "DROP VIEW IF EXISTS stage_latency",
           "ALTER TABLE request DROP COLUMN model")  # fmt: skip
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert equal_request_values(reader.tables, ("model",)) == {"model": None}
