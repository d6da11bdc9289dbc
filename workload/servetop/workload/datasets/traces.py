"""Traces: arrival times and lengths of real requests, read as a stream, from the beginning again when they end."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from servetop.core.errors import UsageError
from servetop.workload.datasets.files import lines_of, table_rows
from servetop.workload.datasets.rows import BadRow, DatasetRow, SkippedRows, good_rows
from servetop.workload.datasets.trace_formats import TraceFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    """One file in a known layout; two passes over it give the same rows."""

    path: Path
    layout: TraceFormat
    timed: bool
    """Its rows say when; else only how long."""
    jitter: float = 0.0
    """Seconds over which each arrival is spread at random, later than the file says."""
    seed: int = 0

    def rows(self, tally: SkippedRows | None = None) -> Iterator[DatasetRow]:
        """One pass, by ascending time since the first row; bad rows go to the tally, else UsageError."""
        in_order = _InOrder(self.layout)
        rows = good_rows(self._raw(), in_order.parse, name=str(self.path), tally=tally)
        return _spread(rows, self.jitter, self.seed) if self.timed and self.jitter else rows

    def endless(self, tally: SkippedRows | None = None) -> Iterator[DatasetRow]:
        """Pass after pass; each begins a mean gap after the one before. Bad rows are left out, the first time counted.

        UsageError when there is not one good row.
        """
        base, counting = 0.0, tally or SkippedRows()
        while True:
            count, last = 0, 0.0
            for row in self.rows(counting):
                count += 1
                last = row.at or 0.0
                yield replace(row, at=base + last) if base else row
            if not count:
                raise UsageError(f"{self.path} has no rows that could be requests")
            base += last + (last / (count - 1) if count > 1 else 1.0)
            counting = SkippedRows()

    def _raw(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        return _json_rows(self.path) if self.layout.blocks else _any_value(self.path)


def _any_value(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    return ((line, dict(values)) for line, values in table_rows(path))


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    for line, text in lines_of(path):
        yield line, _json_object(text)


def _json_object(text: str) -> Mapping[str, object]:
    """Empty for what is no JSON object: its missing columns will tell."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class _InOrder:
    """Parses rows of a layout and makes their times count from the first one; a time that goes back is bad."""

    def __init__(self, layout: TraceFormat) -> None:
        self._layout = layout
        self._first = math.nan
        self._last = -math.inf

    def parse(self, line: int, values: Mapping[str, object]) -> DatasetRow:
        """See Layout.row."""
        row = self._layout.row(line, values)
        if row.at is None:
            return row
        if row.at < self._last:
            raise BadRow(self._layout.time, "a time not before the row above", values[self._layout.time])
        if math.isnan(self._first):
            self._first = row.at
        self._last = row.at
        return replace(row, at=row.at - self._first)


def _spread(rows: Iterator[DatasetRow], seconds: float, seed: int) -> Iterator[DatasetRow]:
    """Every row up to so many seconds later, in order of the new times; few rows are held at a time."""
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
    """What a pass over a trace found."""

    rows: int
    rate: float
    """Mean requests per second; inf when all are at one instant, NaN without times."""
    longest: DatasetRow
    """The request that asks for the longest context."""


def measure(trace: RequestTrace, tally: SkippedRows | None = None) -> TraceFacts:
    """Read all of a trace; UsageError for its first bad row, unless a tally takes them, and when it has none."""
    count, first, last = 0, 0.0, 0.0
    longest: DatasetRow | None = None
    for row in trace.rows(tally):
        first = row.at or 0.0 if not count else first
        count, last = count + 1, row.at or 0.0
        if longest is None or context_of(row) > context_of(longest):
            longest = row
    if longest is None:
        raise UsageError(f"{trace.path} has no rows that could be requests")
    rate = (count - 1) / (last - first) if last > first else math.inf
    return TraceFacts(rows=count, rate=rate if trace.timed else math.nan, longest=longest)


def context_of(row: DatasetRow) -> int:
    """Tokens that a row's prompt and answer take together."""
    return (row.input_tokens or 0) + (row.output_tokens or 0)
