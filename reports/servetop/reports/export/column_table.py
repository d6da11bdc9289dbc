"""A table of a recording as named NumPy arrays."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from servetop.core.errors import UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.exported_tables import TABLES
from servetop.reports.export.request_arrays import request_array_blocks, request_arrays

_SHOWN = 5
"""Rows of each end that a notebook shows of a long table."""


class ColumnTable:
    """Columns by name, each of shape (rows,); their meanings and units are in docs/reference/exported-tables.md.

    A number that is unknown is NaN, a text None. The arrays belong to the caller.
    """

    def __init__(self, name: str, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        self.name = name
        """What a row is: `requests`, `ticks`, `stages`, `engine` or `gpu`."""
        self._columns = columns

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return a column; KeyError for an unknown name."""
        return self._columns[name]

    def __len__(self) -> int:
        """Return the number of rows."""
        return next((each.size for each in self._columns.values()), 0)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self):,} rows, {len(self._columns)} columns>"

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table` with null for what is unknown; UsageError without pyarrow."""
        arrow = _imported("pyarrow")
        text = {True: arrow.string(), False: None}
        columns = self._columns.items()
        return arrow.table(
            {name: arrow.array(each, type=text[each.dtype == object], from_pandas=True) for name, each in columns}
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table by Arrow's C interface, which DuckDB, Polars and others read; UsageError without pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`; UsageError without pandas."""
        return _imported("pandas").DataFrame(self._columns)

    def to_polars(self) -> Any:
        """Return a `polars.DataFrame` with null for what is unknown; UsageError without polars."""
        polars = _imported("polars")
        columns = {
            name: polars.Series(each.tolist(), dtype=polars.String) if each.dtype == object else each
            for name, each in self._columns.items()
        }
        return polars.DataFrame(columns, nan_to_null=True)

    def _repr_html_(self) -> str:
        """Return the first and last rows as a table for a notebook."""
        places = list(range(len(self)))
        if len(self) > 2 * _SHOWN:
            places = [*places[:_SHOWN], -1, *places[-_SHOWN:]]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_cell(each, place)}</td>' for each in self._columns.values())}</tr>"
            for place in places
        )
        return f"<p>{html.escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def read_table(reader: RecordingReader, name: str) -> ColumnTable:
    """Return a table of TABLES, without rows if the recording has none."""
    if name == "requests":
        return ColumnTable(name, request_arrays(reader))
    table = TABLES[name]
    rows = list(table.read(reader))
    return ColumnTable(name, {each.name: _array([each.value(row) for row in rows]) for each in table.columns})


def read_tables(reader: RecordingReader, name: str) -> Iterator[ColumnTable]:
    """Yield the rows of `read_table` in tables of a few thousand requests each, or all rows of another table."""
    if name == "requests":
        yield from (ColumnTable(name, block) for block in request_array_blocks(reader))
    else:
        yield read_table(reader, name)


def _array(values: list[Any]) -> npt.NDArray[Any]:
    """Return booleans, integers or texts if all are, else floats, in which an unknown number is NaN."""
    known = [each for each in values if each is not None]
    if any(isinstance(each, str) for each in known):
        return np.array([None if each is None else str(each) for each in values], dtype=object)
    if len(known) == len(values) and known:
        for kind in (bool, int):
            if all(isinstance(each, kind) for each in known):
                return np.array(values, dtype=kind)
    return np.array([np.nan if each is None else float(each) for each in values], dtype=np.float64)


def _cell(values: npt.NDArray[Any], place: int) -> str:
    if place == -1:
        return "…"
    value = values[place]
    if value is None or value != value:
        return ""
    return html.escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"this needs {module}, which is not installed: pip install {module}") from error
