"""The data file of a load, which is found and read once for all cells of a sweep."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from servetop.core.config import WorkloadConfig
from servetop.workload.datasets.rows import DatasetRow, SkippedRows

if TYPE_CHECKING:  # most loads read no file
    from servetop.workload.datasets.text_dataset import TextDataset
    from servetop.workload.datasets.traces import RequestTrace

MOST_KEPT = 16 << 20
"""Bytes, estimated, of the rows that are kept for further cells; a cell that needs more reads the file itself."""
_ROW_BYTES, _BLOCK_BYTES = 400, 40


class SharedDataset:
    """Opens the dataset of a workload for each cell, which begins with its first row."""

    def __init__(self, workload: WorkloadConfig, skipped: SkippedRows | None = None) -> None:
        """`skipped` counts the unusable rows, and remembers the file, so that a change of it is named."""
        self.skipped = skipped or SkippedRows()
        self._workload = workload
        self._traces: dict[int, RequestTrace | None] = {}
        self._texts: list[TextDataset | None] = []
        self._rows: dict[int, _SharedRows] = {}
        """By the identity of the trace or the texts."""

    def trace(self, seed: int) -> RequestTrace | None:
        """Return the trace of the workload; None if its dataset is not one. UsageError for a file in another format."""
        if seed not in self._traces:
            from servetop.workload.datasets.catalogue import trace_of

            self._traces[seed] = trace_of(self._workload, seed=seed)
        return self._traces[seed]

    def texts(self) -> TextDataset | None:
        """Return the texts of the workload; None if its dataset has none."""
        if not self._texts:
            from servetop.workload.datasets.catalogue import texts_of

            self._texts = [texts_of(self._workload)]
        return self._texts[0]

    def rows(self, file: RequestTrace | TextDataset) -> Iterator[DatasetRow]:
        """Yield the rows of a trace or of texts from the first one, without end; a file that changed is read again."""
        if self.skipped.opens(file.path):
            self._traces, self._texts, self._rows = {}, [], {}
        if id(file) not in self._rows:
            self._rows[id(file)] = _SharedRows(file.endless, self.skipped)
        return iter(self._rows[id(file)])


class _SharedRows:
    """Endless rows for several readers, of which the first one reads the file."""

    def __init__(self, read: Callable[[SkippedRows], Iterator[DatasetRow]], skipped: SkippedRows) -> None:
        self._read = read
        self._source = read(skipped)
        self._taken = False
        self._kept: list[DatasetRow] = []
        self._room = MOST_KEPT

    def __iter__(self) -> Iterator[DatasetRow]:
        position = 0
        while position < len(self._kept) or self._keep_next():
            yield self._kept[position]
            position += 1
        if self._taken:
            yield from itertools.islice(self._read(SkippedRows()), position, None)
        self._taken = True
        yield from self._source

    def _keep_next(self) -> bool:
        if self._room <= 0:
            return False
        row = next(self._source)
        self._kept.append(row)
        self._room -= _ROW_BYTES + len(row.text or "") + _BLOCK_BYTES * len(row.blocks)
        self._room -= sum(len(turn.question) for turn in row.turns)
        return True
