"""Columns of the samples of an engine in a recording, read without making the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.bounds import all_bounded
from servetop.recordings.format.merged_codec import MERGED, PEAKS
from servetop.recordings.format.schema import EventTable
from servetop.recordings.read.table_reader import TableReader


class StoredColumns:
    """The values of the rows of a table of samples, each of shape (rows,): those of `HighestColumns` of its samples.

    A row that stands for several samples is the last of them, with the maxima of its gauges.
    """

    def __init__(self, tables: TableReader, table: EventTable) -> None:
        """Read all rows; an invalid one is omitted and recorded as damage."""
        self._wanted = {each.name for each in table.codec.columns if each.sql_type in ("REAL", "INTEGER")}
        found: dict[str, list[FloatArray]] = {name: [] for name in self._wanted}
        self._rows = 0
        for block in tables.valid_blocks(table):
            columns: Any = block.columns
            for name in self._wanted & columns.keys():
                found[name].append(np.array(columns[name], dtype=np.float64))  # None becomes NaN
            self._rows += len(block)
        self._columns = {name: np.concatenate(parts) for name, parts in found.items() if parts}

    def column(self, name: str) -> FloatArray:
        """Return a field of each row; NaN if unknown or out of bounds."""
        values = self._column(name)
        if name not in PEAKS:
            return all_bounded(values, name=name)
        peaks = self._column(PEAKS[name])
        highest = (self._column(MERGED) > 1) & ~np.isnan(peaks) & ~np.isnan(values)
        return all_bounded(np.where(highest, peaks, values))

    def _column(self, name: str) -> FloatArray:
        return self._columns.get(name, np.full(self._rows, np.nan))
