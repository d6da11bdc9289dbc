"""Rows of prompts from any file that has columns: Parquet, JSON or a table, recognised by content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from servetop.workload.datasets.columnar import columnar_values
from servetop.workload.datasets.json_rows import json_rows
from servetop.workload.datasets.rows import COLUMN_NAME, BadRow
from servetop.workload.datasets.tables import table_rows
from servetop.workload.datasets.text_file import is_parquet, opened

_LONGEST_STRING = 16 << 20


def records(path: Path) -> Iterator[tuple[int, object | BadRow]]:
    """Return the rows of a file, or of all data files of a folder."""
    if path.is_dir() or path.suffix == ".arrow" or is_parquet(path):
        return columnar_values(path)
    return json_rows(path) if holds_json(path) else table_rows(path)


def holds_json(path: Path) -> bool:
    """Whether the file begins as a JSON array or object does, or with a JSON string that is no name of a column."""
    with opened(path) as file:
        start = file.read(1)
        while start.isspace():
            start = file.read(1)
        return start in ("[", "{") or (start == '"' and _is_prompt(start + file.readline(_LONGEST_STRING)))


def _is_prompt(line: str) -> bool:
    """Whether a line is one JSON string, and not the quoted header of a table with one column."""
    try:
        found = json.loads(line)
    except ValueError:
        return False
    return isinstance(found, str) and COLUMN_NAME.fullmatch(found) is None
