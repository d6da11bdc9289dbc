"""Data files as text, numbered lines or JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from servetop.core.errors import UsageError
from servetop.core.system.package_data import package_path
from servetop.workload.datasets.rows import BadRow, MissingColumn
from servetop.workload.datasets.text_file import opened

MAX_LINE_CHARS = 16 << 20
"""Longest line accepted."""


def shipped(name: str) -> Path:
    """Path of a data file that is part of servetop."""
    return package_path("servetop.workload", "data") / name


def whole_text(path: Path) -> str:
    """Return the whole text of a small file."""
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


def value_of(row: Mapping[str, object], column: str) -> object:
    """Return the value of a column; BadRow when the row has none."""
    if column not in row:
        raise MissingColumn(column, row)
    if row[column] is None:
        raise BadRow(column, "a value", None)
    return row[column]
