"""The formats that a recording can be exported to, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.exported_tables import TABLES, table_rows
from servetop.reports.export.row_formats import csv_text, json_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file of an export."""

    name: str
    """Its name in a folder of several."""
    parts: Iterator[str]
    """Its text, computed while it is read; errors of the recording are raised before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A format that `servetop export` writes."""

    files: Callable[[RecordingReader, str], Sequence[ExportedFile]]
    """Returns the files of a recording; the text is the name of a table, for formats that have one."""
    has_tables: bool = False
    """Whether the user names a table."""


def _csv(reader: RecordingReader, table: str) -> Sequence[ExportedFile]:
    parts = csv_text(TABLES[table].columns, table_rows(reader, table))
    return [ExportedFile(name=f"{reader.name}-{table}.csv", parts=parts)]


def _json_lines(reader: RecordingReader, table: str) -> Sequence[ExportedFile]:
    parts = json_lines((*TABLES[table].columns, *TABLES[table].lists), table_rows(reader, table))
    return [ExportedFile(name=f"{reader.name}-{table}.jsonl", parts=parts)]


FORMATS: Mapping[str, ExportFormat] = {
    "csv": ExportFormat(files=_csv, has_tables=True),
    "jsonl": ExportFormat(files=_json_lines, has_tables=True),
}
