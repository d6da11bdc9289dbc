"""The samples of several servers in a recording, of which one row may stand for many; made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from servetop.core.events import EngineSample, ReplicaSample
from servetop.core.merged.merged_sample import MergedSample

SampleRow = EngineSample | MergedSample


class SampleRows(Sequence[ReplicaSample]):
    """Samples in rows, in the order of time of each server."""

    def __init__(self, rows: Iterable[SampleRow] = ()) -> None:
        """Take the rows of another such sequence as they are."""
        self.rows: Sequence[SampleRow] = rows.rows if isinstance(rows, SampleRows) else list(rows)

    def __len__(self) -> int:
        return sum(row.count if isinstance(row, MergedSample) else 1 for row in self.rows)

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            if isinstance(row, MergedSample):
                yield from row.samples()
            else:
                yield row

    @overload
    def __getitem__(self, at: int) -> ReplicaSample: ...

    @overload
    def __getitem__(self, at: slice) -> list[ReplicaSample]: ...

    def __getitem__(self, at: int | slice) -> Any:
        return list(self)[at]

    def by_replica(self) -> dict[int, list[SampleRow]]:
        """Return the rows of each server by its number."""
        found: dict[int, list[SampleRow]] = {}
        for row in self.rows:
            found.setdefault(getattr(last_sample(row), "replica", 0), []).append(row)
        return found


def last_sample(row: SampleRow) -> EngineSample:
    """Return the last sample of a row, with the means of the gauges of all that it stands for."""
    return row.sample if isinstance(row, MergedSample) else row
