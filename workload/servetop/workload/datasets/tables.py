"""Tables with a header line: values separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from servetop.core.errors import UsageError
from servetop.core.text.counted import counted
from servetop.core.text.sanitize import sanitize_line
from servetop.workload.datasets.rows import BadRow, MalformedRow
from servetop.workload.datasets.text_file import opened

MAX_FIELD_CHARS = 64 << 20
"""Longest value accepted."""
_DELIMITERS = ",;\t|"


def header_of(path: Path) -> list[str]:
    """Return the column names of a table; UsageError when there is none."""
    for _, header in _lines(path):
        return _names(path, header)
    raise UsageError(f"{path} is empty: give a file with a header line and rows")


def table_rows(path: Path) -> Iterator[tuple[int, Mapping[str, str | None] | BadRow]]:
    """Rows of a table by column name, numbered by their first lines; empty rows are skipped.

    A missing value at the end of a row is None; a row with more values than columns is a BadRow.
    """
    lines = _lines(path)
    names = _names(path, next(lines, (0, []))[1])
    for number, values in lines:
        if isinstance(values, BadRow):
            yield number, values
        elif len(values) > len(names) and any(values[len(names) :]):
            yield (
                number,
                MalformedRow(f"{len(values)} values for {counted(len(names), 'column')}: a value is not quoted"),
            )
        elif values:
            yield number, {**dict.fromkeys(names), **dict(zip(names, values, strict=False))}


def _names(path: Path, header: list[str] | BadRow) -> list[str]:
    """Return the column names of a header line; UsageError for a name that occurs twice."""
    names = [] if isinstance(header, BadRow) else [name.strip() for name in header]
    twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    if twice:
        shown = sanitize_line(", ".join(map(repr, twice)))[:100]
        raise UsageError(f"{path}, line 1: several columns are named {shown}: rename all but one")
    return names


def _lines(path: Path) -> Iterator[tuple[int, list[str] | BadRow]]:
    """Yield the values of each row, the header's first, or what is wrong with the row."""
    with opened(path) as file:
        first = next(file, "")
        before, separator = (1, named) if (named := _separator(first)) else (0, "")
        first = next(file, "") if separator else first
        csv.field_size_limit(MAX_FIELD_CHARS)  # its default of 131,072 characters is less than a long prompt
        reader = csv.reader(
            itertools.chain(filter(None, (first,)), file), delimiter=separator or _delimiter(first), strict=True
        )
        while True:
            number = before + reader.line_num + 1
            try:
                values: list[str] | BadRow = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                values = MalformedRow(f"not a row of a table ({error})")
            yield number, values


def _separator(line: str) -> str:
    """Return the separator that a line before the header names, as Excel's `sep=;` does; empty for any other line."""
    name, _, separator = line.strip("\r\n").strip('"').lower().partition("=")
    return separator if name == "sep" and len(separator) == 1 and separator in _DELIMITERS else ""


def _delimiter(header: str) -> str:
    """Return the separator that occurs most often in the header, outside quotes; a comma when none does."""
    bare = "".join(header.split('"')[::2])
    return max(_DELIMITERS, key=bare.count)
