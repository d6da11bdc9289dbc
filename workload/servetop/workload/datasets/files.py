"""Text files of datasets, plain or gzipped, as numbered lines or table rows."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, cast

from servetop.core.errors import UsageError
from servetop.core.system.package_data import package_path
from servetop.workload.datasets.rows import BadRow

MAX_LINE_CHARS = 16 << 20
"""Longest line accepted."""


def shipped(name: str) -> Path:
    """Path of a data file that is part of servetop."""
    return package_path("servetop.workload", "data") / name


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """Open a file as text; UsageError when opening or reading fails."""
    try:
        with path.open("rb") as plain:
            stream = gzip.GzipFile(fileobj=plain) if path.suffix == ".gz" else plain
            yield io.TextIOWrapper(cast("IO[bytes]", stream), encoding="utf-8-sig", errors="replace", newline="")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path} is not a complete gzip file ({error}): unpack it, or download it again") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {path} ({why}): check --dataset-path") from None


def whole_text(path: Path) -> str:
    """The whole text of a small file."""
    with opened(path) as file:
        return file.read()


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Non-empty lines with their numbers, stripped."""
    with opened(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_CHARS):
            number += 1
            if len(line) == MAX_LINE_CHARS:
                raise UsageError(f"{path}, line {number}: longer than {MAX_LINE_CHARS >> 20} MiB: is it a dataset?")
            if stripped := line.strip():
                yield number, stripped


def header_of(path: Path) -> list[str]:
    """The column names of a table; UsageError when there is none."""
    for header in _table(path):
        return [name.strip() for name in header[1]]
    raise UsageError(f"{path} is empty: give a file with a header line and rows")


def table_rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Rows of a CSV file by column name, numbered by their lines; empty rows are skipped."""
    rows = _table(path)
    names = [name.strip() for name in next(rows, (0, []))[1]]
    for number, values in rows:
        if values:
            yield number, dict(zip(names, values, strict=False))


def _table(path: Path) -> Iterator[tuple[int, list[str]]]:
    with opened(path) as file:
        reader = csv.reader(line.replace("\0", "\ufffd") for line in file)
        while True:
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error:
                values = ["\ufffd"]
            yield reader.line_num, values


def value_of(row: Mapping[str, object], column: str) -> object:
    """The value of a column; BadRow when the row has none."""
    if row.get(column) is None:
        raise BadRow(column, "a value", None)
    return row[column]
