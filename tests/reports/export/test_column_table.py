"""Tables of a recording as arrays have the rows and values of exported tables."""

from __future__ import annotations

import contextlib
import math
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.core.config import StageConfig
from servetop.core.errors import UsageError
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.request_blocks import BLOCK
from servetop.reports.export.column_table import ColumnTable, read_table, read_tables
from servetop.reports.export.exported_tables import TABLES
from tests.judgement.brief_recordings import record_briefly
from tests.reports.export.odd_requests import record_odd_requests

GOLDEN = Path(__file__).parents[2] / "golden"


@contextlib.contextmanager
def opened(name: str) -> Iterator[RecordingReader]:
    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        yield reader


@pytest.mark.parametrize(
    "name", ["sample:overload", str(GOLDEN / "vllm.servetop"), str(GOLDEN / "whitepaper.servetop")]
)
@pytest.mark.parametrize("table", TABLES)
def test_each_value_is_that_of_the_exported_row(name: str, table: str) -> None:
    with opened(name) as reader:
        columns, rows = read_table(reader, table), list(TABLES[table].read(reader))
    assert list(columns.names) == [each.name for each in TABLES[table].columns]
    assert len(columns) == len(rows)
    for each in TABLES[table].columns:
        for row, value in zip(rows, columns[each.name], strict=True):
            assert equal(each.value(row), value), each.name


def equal(expected: Any, value: Any) -> bool:
    if expected is None:
        return value is None or math.isnan(value)
    if isinstance(expected, float):
        return math.isclose(expected, value, abs_tol=1e-9) or (math.isnan(expected) and math.isnan(value))
    return bool(expected == value)


def test_requests_of_several_blocks_are_those_of_the_exported_rows(tmp_path: Path) -> None:
    path = record_odd_requests(tmp_path / "run.servetop", 2 * BLOCK + 7)
    with opened(str(path)) as reader:
        tables, rows = list(read_tables(reader, "requests")), list(TABLES["requests"].read(reader))
        whole = read_table(reader, "requests")
    assert [len(each) for each in tables] == [0, BLOCK, BLOCK, 7]
    for each in TABLES["requests"].columns:
        values = [value for table in tables for value in table[each.name].tolist()]
        assert [None if value != value else value for value in values] == [each.value(row) for row in rows], each.name
        assert {table[each.name].dtype for table in tables} == {whole[each.name].dtype}
        assert whole[each.name].tolist() == pytest.approx(values, rel=0, abs=0, nan_ok=True), each.name


def test_another_table_is_one_of_all_rows() -> None:
    with opened("sample:overload") as reader:
        (ticks,) = read_tables(reader, "ticks")
        assert len(ticks) == len(read_table(reader, "ticks"))


def test_only_requests_of_the_totals_are_counted(tmp_path: Path) -> None:
    stages = (StageConfig(request_rate=20.0, duration=2.0, warmup=True), StageConfig(request_rate=20.0, duration=4.0))
    path = record_briefly(tmp_path / "run.servetop", *stages)
    with opened(str(path)) as reader:
        requests = read_table(reader, "requests")
        counted = [row.counted for row in TABLES["requests"].read(reader)]
    assert requests["counted"].tolist() == counted
    assert 0 < sum(counted) < len(counted)


def test_an_integer_that_is_always_known_is_no_float() -> None:
    with opened("sample:overload") as reader:
        requests = read_table(reader, "requests")
    assert {requests[name].dtype for name in ("id", "stage", "output_tokens", "chunks")} == {np.dtype(np.int64)}
    assert requests["cached_tokens"].dtype == np.float64


def test_a_recording_without_rows_has_empty_columns() -> None:
    with opened("sample:overload") as reader:
        gpu = read_table(reader, "gpu")
    assert (len(gpu), len(gpu.names)) == (0, len(TABLES["gpu"].columns))


def test_a_notebook_shows_the_first_and_last_rows_and_runs_no_text_of_a_server() -> None:
    texts = np.array(["<script>alert(1)</script>", *["ok"] * 20], dtype=object)
    shown = ColumnTable("requests", {"error": texts, "ttft_s": np.linspace(0, 1, 21)})._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert shown.count("<tr>") == 1 + 5 + 1 + 5


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        ColumnTable("requests", {}).to_pandas()


def test_an_installed_library_gets_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=dict))
    columns = {"id": np.arange(3)}
    assert ColumnTable("requests", columns).to_pandas() == columns
