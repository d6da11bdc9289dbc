"""Tables as Parquet files; tests/integration/test_notebook.py reads them with pandas, Polars and Arrow."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_blocks import BLOCK
from servetop.reports.export.column_table import read_table, read_tables
from servetop.reports.export.parquet_table import parquet_table
from tests.reports.export.odd_requests import record_odd_requests


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["export", "sample", "--format", "parquet", "-o", str(tmp_path / "a.parquet")]) == 2
    assert capsys.readouterr().err == (
        "servetop: --format parquet needs pyarrow: install servetop with its extra, "
        "as in pip install 'servetop[datasets]'\n"
    )
    assert not any(tmp_path.iterdir())


def test_a_file_holds_every_column_and_row(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "requests.parquet"
    assert main(["export", "sample", "--format", "parquet", "-o", str(target)]) == 0
    with contextlib.closing(RecordingReader.open(resolve("sample"))) as reader:
        table = read_table(reader, "requests")
    assert parquet.read_table(target).equals(table.to_arrow())


def test_row_groups_hold_what_the_rows_of_json_lines_hold(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, lines = record_odd_requests(tmp_path / "run.servetop", 2 * BLOCK + 7), tmp_path / "lines.jsonl"
    assert main(["export", str(path), "--format", "jsonl", "-o", str(lines)]) == 0
    with contextlib.closing(RecordingReader.open(path)) as reader:
        parts = list(parquet_table(reader, read_tables(reader, "requests"), row_group=BLOCK + 100))
    found = parquet.ParquetFile(io.BytesIO(b"".join(parts)))
    assert [found.metadata.row_group(each).num_rows for each in range(found.num_row_groups)] == [BLOCK, BLOCK + 7]
    assert max(map(len, parts)) < 0.7 * sum(map(len, parts))
    for row, line in zip(found.read().to_pylist(), lines.read_text(encoding="utf-8").splitlines(), strict=True):
        expected = json.loads(line)
        assert row == {name: expected[name] for name in row}


def test_a_table_without_rows_is_refused_before_a_file_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    assert main(["export", "sample", "--format", "parquet", "--table", "gpu", "-o", str(tmp_path / "a.parquet")]) == 2
    assert capsys.readouterr().err == "servetop: overload has no rows for --table gpu: no GPU was read\n"
    assert not any(tmp_path.iterdir())
