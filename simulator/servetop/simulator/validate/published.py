"""Published measurements by table and cell."""

from __future__ import annotations

import csv
import functools
from typing import Any

from servetop.core.system.package_data import package_path

_KEY_COLUMNS = ("max_num_seqs", "max_batch_size", "qps")


def tables() -> list[str]:
    """Return the names of the tables, sorted."""
    data = package_path("servetop.simulator", "data")
    return sorted(path.stem for path in (data / "whitepaper").glob("*.csv"))


@functools.cache
def rows(table: str) -> tuple[dict[str, str], ...]:
    """Return the rows of data/whitepaper/TABLE.csv or data/TABLE.csv as text."""
    data = package_path("servetop.simulator", "data")
    path = data / "whitepaper" / f"{table}.csv"
    with (path if path.exists() else data / f"{table}.csv").open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def measured(table: str, *, engine: str | None = None, column: str = "output_tokens_per_s") -> dict[Any, float]:
    """Return the values by cell: by `(batch, qps)` if the table has both columns, else by the one that it has.

    Cells without a number and cells marked as suspect are omitted.
    """
    return _values(table, engine=engine, column=column, suspect=False)


def suspects(table: str, *, engine: str | None = None, column: str = "output_tokens_per_s") -> dict[Any, float]:
    """Return the values of the cells marked as suspect, with the keys of `measured`."""
    return _values(table, engine=engine, column=column, suspect=True)


def _values(table: str, *, engine: str | None, column: str, suspect: bool) -> dict[Any, float]:
    values: dict[Any, float] = {}
    for row in rows(table):
        if (row.get("suspect", "0") != "0") != suspect or (engine is not None and row["engine"] != engine):
            continue
        try:
            value = float(row[column])
        except ValueError:
            continue
        key = tuple(_number(row[name]) for name in _KEY_COLUMNS if name in row)
        values[key[0] if len(key) == 1 else key] = value
    return values


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value
