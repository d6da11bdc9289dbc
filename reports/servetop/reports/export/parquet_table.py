"""A table of a recording as a Parquet file, written with pyarrow (an extra)."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from servetop.core.errors import UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.column_table import ColumnTable

_GROUP = 131_072
"""Rows of one row group, which a reader may skip by its statistics."""


def require_pyarrow() -> None:
    """Raise UsageError without pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            "--format parquet needs pyarrow: install servetop with its extra, as in pip install 'servetop[datasets]'"
        )


def parquet_table(reader: RecordingReader, table: ColumnTable) -> Iterator[bytes]:
    """Yield a Parquet file with the columns of a table; what is unknown is null.

    The metadata of its schema have the name of the recording, that of the table, and `wall_epoch_s`, the Unix time of
    second 0. Columns whose values are mostly different have no dictionary, which would take longer and save nothing.
    """
    import pyarrow
    import pyarrow.parquet

    about = {"recording": reader.name, "table": table.name, "wall_epoch_s": repr(reader.header.anchor.wall_epoch_s)}
    columns = table.to_arrow().replace_schema_metadata(about)
    repeated = [each.name for each in columns.schema if each.type != pyarrow.float64() and each.name != "id"]
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(columns, sink, compression="zstd", row_group_size=_GROUP, use_dictionary=repeated)
    yield sink.getvalue().to_pybytes()
