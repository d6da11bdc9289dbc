"""A recording as OpenMetrics with timestamps, as `promtool tsdb create-blocks-from openmetrics` reads it.

Each numeric column of the exported tables of ticks, engine samples and GPUs is a metric: `servetop_client_`,
`servetop_engine_` or `servetop_gpu_` and the name of the column; a watch has none of a client. Times are Unix time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from servetop.core.errors import UsageError
from servetop.core.text.exposition_text import help_line, number_text, quoted_label
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.export.exported_columns import ExportedColumn
from servetop.reports.export.exported_tables import TABLES

NOT_CARRIED = ("requests", "stages", "notes and log", "histograms of ticks beyond p50, p90 and p99")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    table: str
    prefix: str
    at: str
    """The column that is the time of a row, in seconds of the run."""
    left_out: frozenset[str]
    """Columns that are times, names or labels."""


_SOURCES = (
    _Source(table="ticks", prefix="client", at="end_s", left_out=frozenset({"tick", "start_s", "end_s"})),
    _Source(table="engine", prefix="engine", at="scrape_end_s", left_out=frozenset({"scrape_start_s", "scrape_end_s"})),
    _Source(table="gpu", prefix="gpu", at="at_s", left_out=frozenset({"at_s", "gpu"})),
)
_UNITS = {"_s": "_seconds"}
"""Ends of names that OpenMetrics spells out."""


def openmetrics_text(reader: RecordingReader) -> Iterator[str]:
    """Yield the metrics one after the other, each with all its samples; UsageError without any sample."""
    found = False
    watched = reader.header.config.watch is not None
    for source in _SOURCES:
        if watched and source.prefix == "client":  # it has sent nothing
            continue
        table = TABLES[source.table]
        rows = list(table.read(reader))
        for column in table.columns:
            if column.name not in source.left_out and (samples := _samples(reader, source, column, rows)):
                found = True
                yield _metric(f"servetop_{source.prefix}_{column.name}", column.meaning, samples)
    if not found:
        raise UsageError(f"{reader.name} has no samples: the run ended before its first tick")
    yield "# EOF\n"


def _samples(reader: RecordingReader, source: _Source, column: ExportedColumn, rows: Sequence[Any]) -> list[str]:
    """Return labels, value and time of each row with a known number."""
    columns = {each.name: each for each in TABLES[source.table].columns}
    recording = quoted_label(reader.name)
    at, gpu, epoch = columns[source.at], columns.get("gpu"), reader.header.anchor.wall_epoch_s
    samples = []
    for row in sorted(rows, key=gpu.value) if gpu is not None else rows:  # the samples of one series together
        value = column.value(row)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            continue
        device = "" if gpu is None else f',gpu="{gpu.value(row)}"'
        samples.append(f"{{recording={recording}{device}}} {number_text(value)} {epoch + at.value(row):.3f}\n")
    return samples


def _metric(name: str, meaning: str, samples: Sequence[str]) -> str:
    """Return a metric with its samples: a counter if its name ends with `_total`, else a gauge."""
    for short, full in _UNITS.items():
        name = name.removesuffix(short) + full if name.endswith(short) else name
    family, kind = (name.removesuffix("_total"), "counter") if name.endswith("_total") else (name, "gauge")
    return f"# HELP {family} {help_line(meaning)}\n# TYPE {family} {kind}\n" + "".join(
        f"{name}{each}" for each in samples
    )
