"""Traces: arrival times and lengths of real requests, streamed from a file and repeated when it ends."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from servetop.core.errors import UsageError
from servetop.workload.datasets.json_rows import json_rows
from servetop.workload.datasets.rows import BadRow, DatasetRow, KeptRows, MalformedRow, SkippedRows, good_rows
from servetop.workload.datasets.tables import table_rows
from servetop.workload.datasets.trace_formats import TraceFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    """A trace file; every pass gives the same rows."""

    path: Path
    file_format: TraceFormat
    timed: bool
    """Rows have arrival times; otherwise only lengths."""
    jitter: float
    """Each arrival is delayed by a random time of up to this many seconds."""
    seed: int

    def rows(self, skipped: SkippedRows | None = None) -> Iterator[DatasetRow]:
        """One pass, by ascending time since the first row; bad rows are counted in `skipped`, or raise UsageError."""
        in_order = _InOrder(self.file_format)
        rows = good_rows(self._raw(), in_order.parse, name=str(self.path), skipped=skipped)
        return _spread(rows, self.jitter, self.seed) if self.timed and self.jitter else rows

    def endless(self, skipped: SkippedRows | None = None) -> Iterator[DatasetRow]:
        """Repeated passes, each a mean gap after the previous one. Bad rows are skipped, and counted in the first pass.

        UsageError when no row is usable.
        """
        first = counting = skipped or SkippedRows()
        base, kept = 0.0, KeptRows()
        while True:
            count, last = 0, 0.0
            for row in kept.one_pass(self.rows, path=self.path, counting=counting, first=first):
                count += 1
                last = row.at or 0.0
                yield replace(row, at=base + last) if base else row
            if not count:
                raise UsageError(f"{self.path} has no usable rows")
            base += last + (last / (count - 1) if count > 1 else 1.0)
            counting = SkippedRows()

    def _raw(self) -> Iterator[tuple[int, object | BadRow]]:
        return json_rows(self.path) if self.file_format.blocks else table_rows(self.path)


class _InOrder:
    """Parses rows of a format, with times relative to the first row; a time before the previous one is a BadRow."""

    def __init__(self, file_format: TraceFormat) -> None:
        self._format = file_format
        self._first = math.nan
        self._last = -math.inf

    def parse(self, line: int, values: object) -> DatasetRow:
        """Parse a row; BadRow for a malformed one."""
        if not isinstance(values, dict):
            raise MalformedRow(
                f"expected an object with the columns of {self._format.name}, found {str(values)[:40]!r}"
            )
        row = self._format.row(line, values)
        if row.at is None:
            return row
        if row.at < self._last:
            raise BadRow(self._format.time, "a time not before the row above", values[self._format.time])
        if math.isnan(self._first):
            self._first = row.at
        self._last = row.at
        return replace(row, at=row.at - self._first)


def _spread(rows: Iterator[DatasetRow], seconds: float, seed: int) -> Iterator[DatasetRow]:
    """Every row, delayed by up to `seconds`, in order of the new times; holds only the rows of that span."""
    generator = np.random.default_rng((seed, 0x6A17))
    held: list[tuple[float, int, DatasetRow]] = []
    for row in rows:
        at = row.at or 0.0
        while held and held[0][0] <= at:
            yield heapq.heappop(held)[2]
        moved = at + seconds * float(generator.random())
        heapq.heappush(held, (moved, row.line, replace(row, at=moved)))
    while held:
        yield heapq.heappop(held)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """Statistics of one pass over a trace."""

    rows: int
    rate: float
    """Mean requests per second; inf when all have the same time, NaN without times."""
    longest: DatasetRow
    """The request with the longest context."""


def measure(trace: RequestTrace, skipped: SkippedRows | None = None) -> TraceFacts:
    """Read a whole trace; UsageError without usable rows, and for a bad row unless `skipped` counts them."""
    count, first, last = 0, 0.0, 0.0
    longest: DatasetRow | None = None
    for row in trace.rows(skipped):
        first = row.at or 0.0 if not count else first
        count, last = count + 1, row.at or 0.0
        if longest is None or context_of(row) > context_of(longest):
            longest = row
    if longest is None:
        raise UsageError(f"{trace.path} has no usable rows")
    rate = (count - 1) / (last - first) if last > first else math.inf
    return TraceFacts(rows=count, rate=rate if trace.timed else math.nan, longest=longest)


def context_of(row: DatasetRow) -> int:
    """Prompt and output tokens of a row."""
    return (row.input_tokens or 0) + (row.output_tokens or 0)
