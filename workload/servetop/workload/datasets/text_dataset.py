"""A dataset of prompts: the rows of a file, once or without end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.core.errors import UsageError
from servetop.workload.datasets.records import records
from servetop.workload.datasets.rows import DatasetRow, KeptRows, SkippedRows, good_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDataset:
    """A file of prompts; every pass gives the same rows in the same order."""

    path: Path
    parse: Callable[[int, Any], DatasetRow]

    def rows(self, skipped: SkippedRows | None = None) -> Iterator[DatasetRow]:
        """Return the rows of one pass; bad ones are counted in `skipped`, or raise UsageError without it."""
        return good_rows(records(self.path), self.parse, name=str(self.path), skipped=skipped)

    def endless(self, skipped: SkippedRows | None = None) -> Iterator[DatasetRow]:
        """Repeated passes; bad rows are skipped, and counted in the first pass. UsageError when no row is usable.

        A file that cannot be read to its end is used as far as it goes. One that is gone or empty in a later pass is
        replaced by the first rows of the first pass, so that the load does not end.
        """
        first = counting = skipped or SkippedRows()
        kept = KeptRows()
        while True:
            count = 0
            for row in kept.one_pass(self.rows, path=self.path, counting=counting, first=first):
                count += 1
                yield row
            if not count:
                raise self.unusable(counting)
            counting.rows_in_pass = count
            counting = SkippedRows()

    def unusable(self, skipped: SkippedRows) -> UsageError:
        """Return the error for a file without usable rows, with the reasons that `skipped` counted."""
        reasons = "; ".join(skipped.texts())
        return UsageError(f"{self.path} has no usable prompts" + (f": {reasons}" if reasons else "") + skipped.proposal)
