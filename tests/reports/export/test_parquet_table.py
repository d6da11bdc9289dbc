"""Tables as Parquet files; tests/integration/test_notebook.py reads them with pandas, Polars and Arrow."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from servetop.cli.main import main
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.column_table import read_table


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


def test_a_table_without_rows_is_refused_before_a_file_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    assert main(["export", "sample", "--format", "parquet", "--table", "gpu", "-o", str(tmp_path / "a.parquet")]) == 2
    assert capsys.readouterr().err == "servetop: overload has no rows for --table gpu: no GPU was read\n"
    assert not any(tmp_path.iterdir())
