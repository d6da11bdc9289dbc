"""Columns with one value in all rows."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
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
        assert reader.equal_request_values(COLUMNS, where="due IS NOT NULL") == equal


def test_rows_that_are_not_selected_do_not_count(tmp_path: Path) -> None:
    path = golden("vllm", tmp_path)
    change(path, "UPDATE request SET worker = id > 3, error = 'e'")
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.equal_request_values(("worker", "error"), where="id > 3") == {"worker": 1, "error": "e"}


def test_a_column_that_an_older_file_lacks_is_unknown_in_all_rows(tmp_path: Path) -> None:
    path = golden("vllm", tmp_path)
    change(path, "DROP VIEW IF EXISTS counted_request", "DROP VIEW IF EXISTS stage_latency",
           "ALTER TABLE request DROP COLUMN model")  # fmt: skip
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert reader.equal_request_values(("model",), where="due IS NOT NULL") == {"model": None}
