"""The formats that a recording can be exported to, by name."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.core.errors import ServetopError, UsageError, system_reason
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.aiperf_records import NOT_CARRIED as NOT_IN_AIPERF
from servetop.reports.export.aiperf_records import RECORDS_FILE, SUMMARY_FILE, aiperf_records, aiperf_summary
from servetop.reports.export.column_table import read_tables
from servetop.reports.export.exported_tables import TABLES, no_rows, table_rows
from servetop.reports.export.guidellm_benchmarks import GUIDELLM_FILE, NOT_IN_GUIDELLM, guidellm_benchmarks
from servetop.reports.export.llmd_report import NOT_CARRIED as NOT_IN_LLMD_REPORT
from servetop.reports.export.llmd_report import llmd_report
from servetop.reports.export.openmetrics_text import NOT_CARRIED as NOT_IN_OPENMETRICS
from servetop.reports.export.openmetrics_text import openmetrics_text
from servetop.reports.export.parquet_table import parquet_table, require_pyarrow
from servetop.reports.export.row_formats import csv_text, json_lines
from servetop.reports.export.stage_rows import exported_stages
from servetop.reports.export.trace_events import NOT_CARRIED as NOT_IN_TRACE
from servetop.reports.export.trace_events import trace_text
from servetop.reports.export.vllm_result import NOT_CARRIED as NOT_IN_VLLM_RESULT
from servetop.reports.export.vllm_result import vllm_result
from servetop.reports.export.whole_file import write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """One file of an export."""

    name: str
    """Its name in a folder of several; `/` separates a folder of its own."""
    parts: Callable[[], Iterator[Any]]
    """Returns its contents, computed while they are read: texts, and of a binary format bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """The part of a recording to export."""

    table: str = "requests"
    stage: int | None = None
    """None for all stages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A format that `servetop export` writes."""

    files: Callable[[RecordingReader, ExportedPart], Sequence[ExportedFile]]
    """Returns the files of a recording; UsageError if it has nothing to export."""
    by_table: bool = False
    """Whether a file holds one table."""
    binary: bool = False
    """Whether a file is not text."""
    by_stage: bool = False
    """Whether a file holds one stage."""
    not_carried: Sequence[str] = ()
    """What the format has no place for: phrases of a message to the user."""


def _csv(reader: RecordingReader, part: ExportedPart) -> Sequence[ExportedFile]:
    rows = table_rows(reader, part.table)
    name = f"{reader.name}-{part.table}.csv"
    return [ExportedFile(name=name, parts=lambda: csv_text(TABLES[part.table].columns, rows))]


def _json_lines(reader: RecordingReader, part: ExportedPart) -> Sequence[ExportedFile]:
    rows, table = table_rows(reader, part.table), TABLES[part.table]
    name = f"{reader.name}-{part.table}.jsonl"
    return [ExportedFile(name=name, parts=lambda: json_lines((*table.columns, *table.lists), rows))]


def _parquet(reader: RecordingReader, part: ExportedPart) -> Sequence[ExportedFile]:
    require_pyarrow()
    tables = filter(len, read_tables(reader, part.table))
    first = next(tables, None)
    if first is None:
        raise UsageError(no_rows(reader, part.table))
    name = f"{reader.name}-{part.table}.parquet"
    return [ExportedFile(name=name, parts=lambda: parquet_table(reader, itertools.chain([first], tables)))]


def _vllm(reader: RecordingReader, part: ExportedPart) -> Sequence[ExportedFile]:
    return [
        ExportedFile(name=f"{stage.file_stem}.json", parts=functools.partial(vllm_result, reader, stage))
        for stage in exported_stages(reader, part.stage)
    ]


def _llmd(reader: RecordingReader, part: ExportedPart) -> Sequence[ExportedFile]:
    return [
        ExportedFile(name=f"{stage.file_stem}-report.json", parts=functools.partial(llmd_report, reader, stage))
        for stage in exported_stages(reader, part.stage)
    ]


def _aiperf(reader: RecordingReader, part: ExportedPart) -> Sequence[ExportedFile]:
    stages = exported_stages(reader, part.stage)
    return [
        ExportedFile(
            name=f"{stage.file_stem}/{name}" if len(stages) > 1 else name, parts=functools.partial(text, reader, stage)
        )
        for stage in stages
        for name, text in ((RECORDS_FILE, aiperf_records), (SUMMARY_FILE, aiperf_summary))
    ]


def _guidellm(reader: RecordingReader, part: ExportedPart) -> Sequence[ExportedFile]:
    stages = exported_stages(reader, part.stage)
    return [ExportedFile(name=GUIDELLM_FILE, parts=functools.partial(guidellm_benchmarks, reader, stages))]


def _perfetto(reader: RecordingReader, _: ExportedPart) -> Sequence[ExportedFile]:
    return [ExportedFile(name=f"{reader.name}-trace.json", parts=lambda: trace_text(reader))]


def _openmetrics(reader: RecordingReader, _: ExportedPart) -> Sequence[ExportedFile]:
    return [ExportedFile(name=f"{reader.name}.openmetrics", parts=lambda: openmetrics_text(reader))]


def write_files(files: Sequence[ExportedFile], target: Path) -> Iterator[Path]:
    """Write one file to its name, or into an existing folder; several into a folder, which is made if necessary.

    Yield the path of each file that is written as a whole; ServetopError if one cannot be written.
    """
    if len(files) > 1:
        try:
            target.mkdir(exist_ok=True)
        except OSError as error:
            raise ServetopError(f"cannot write to {target} ({system_reason(error)}): give a folder with -o") from error
    for each in files:
        path = target / each.name if target.is_dir() else target
        if "/" in each.name:
            path.parent.mkdir(exist_ok=True)
        write_whole(path, each.parts())
        yield path


FORMATS: Mapping[str, ExportFormat] = {
    "csv": ExportFormat(files=_csv, by_table=True),
    "jsonl": ExportFormat(files=_json_lines, by_table=True),
    "parquet": ExportFormat(files=_parquet, by_table=True, binary=True),
    "vllm": ExportFormat(files=_vllm, by_stage=True, not_carried=NOT_IN_VLLM_RESULT),
    "aiperf": ExportFormat(files=_aiperf, by_stage=True, not_carried=NOT_IN_AIPERF),
    "llm-d": ExportFormat(files=_llmd, by_stage=True, not_carried=NOT_IN_LLMD_REPORT),
    "guidellm": ExportFormat(files=_guidellm, by_stage=True, not_carried=NOT_IN_GUIDELLM),
    "perfetto": ExportFormat(files=_perfetto, not_carried=NOT_IN_TRACE),
    "openmetrics": ExportFormat(files=_openmetrics, not_carried=NOT_IN_OPENMETRICS),
}
