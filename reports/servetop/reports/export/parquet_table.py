"""A table of a recording as a Parquet file, written with pyarrow (an extra)."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from servetop.core.errors import UsageError
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.column_table import ColumnTable

ROW_GROUP = 131_072
"""Most rows of one row group, which a reader may skip by its statistics."""


def require_pyarrow() -> None:
    """Raise UsageError without pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            "--format parquet needs pyarrow: install servetop with its extra, as in pip install 'servetop[datasets]'"
        )


def parquet_table(
    reader: RecordingReader, tables: Iterable[ColumnTable], *, row_group: int = ROW_GROUP
) -> Iterator[bytes]:
    """Yield a Parquet file with the columns of tables of one kind, one after the other; what is unknown is null.

    The metadata of its schema have the name of the recording, that of the table, and `wall_epoch_s`, the Unix time of
    second 0. Columns whose values are mostly different have no dictionary, which would take longer and save nothing.
    At least one table is needed; the tables of two row groups, of at most `row_group` rows, are in memory at once: one
    is compressed by a thread while the next one is read.
    """
    import pyarrow
    import pyarrow.parquet

    groups = _groups(tables, row_group)
    first = next(groups)
    about = {"recording": reader.name, "table": first[0].name, "wall_epoch_s": repr(reader.header.anchor.wall_epoch_s)}
    schema = first[0].to_arrow().schema.with_metadata(about)
    repeated = [each.name for each in schema if each.type != pyarrow.float64() and each.name != "id"]
    sink = io.BytesIO()
    with (
        pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd", use_dictionary=repeated) as writer,
        ThreadPoolExecutor(max_workers=1) as thread,
    ):

        def written(group: list[ColumnTable]) -> bytes:
            writer.write_table(pyarrow.concat_tables([each.to_arrow() for each in group]), row_group_size=row_group)
            return _taken(sink)

        last = thread.submit(written, first)
        for group in groups:
            following = thread.submit(written, group)
            yield last.result()
            last = following
        yield last.result()
    yield _taken(sink)


def _groups(tables: Iterable[ColumnTable], most: int) -> Iterator[list[ColumnTable]]:
    """Yield tables together that have at most `most` rows, or one that has more."""
    group: list[ColumnTable] = []
    for table in tables:
        if sum(map(len, group)) + len(table) > most and group:
            yield group
            group = []
        group.append(table)
    if group:
        yield group


def _taken(sink: io.BytesIO) -> bytes:
    """Return what was written since the last call, and forget it."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written
