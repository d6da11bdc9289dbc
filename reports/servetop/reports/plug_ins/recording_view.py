"""What plug-ins and callers of servetop.api read of a recording: figures, story, and tables of NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.config import RunConfig

if TYPE_CHECKING:
    from servetop.analysis.summary.story_summary import StorySummary
    from servetop.analysis.summary.summary_types import RunSummary
    from servetop.recordings.read.reader import RecordingReader
    from servetop.reports.export.column_table import ColumnTable


class RecordingView:
    """One recording, open for reading. For one thread at a time.

    Everything is read when it is asked for, so a run that is still being recorded may be asked again.
    """

    def __init__(self, reader: RecordingReader) -> None:
        self.reader = reader
        """The rows of the file as events; its interface may change in any version."""

    @property
    def path(self) -> Path:
        """The file."""
        return self.reader.path

    @property
    def config(self) -> RunConfig:
        """The configuration of the run, without secrets."""
        return self.reader.header.config

    @property
    def damage(self) -> str | None:
        """One line on what could not be read so far; None for a file without damage."""
        return self.reader.damage

    def summary(self, *, prices: Sequence[str] = ()) -> RunSummary:
        """Return the figures of `servetop summary`; `prices` as in `2.5/h` or `a100=2.5/h`."""
        from servetop.reports.summary.summary import run_summary

        return run_summary(self.reader, prices=prices)

    def story(self) -> StorySummary:
        """Return what limited the run, the lines that explain it, and what to try next."""
        from servetop.reports.summary.run_story import run_story

        return run_story(self.reader)[0]

    def requests(self) -> ColumnTable:
        """Return a row for each request that ended, in the order of ending; about 250 bytes of memory each."""
        return self._table("requests")

    def ticks(self) -> ColumnTable:
        """Return a row for each quarter of a second: what the client sent and received, percentiles of latencies."""
        return self._table("ticks")

    def stages(self) -> ColumnTable:
        """Return a row for each stage with a load, without warm-ups: load, outcome, totals and latencies."""
        return self._table("stages")

    def engine(self) -> ColumnTable:
        """Return a row for each scrape of the engine's metrics; of several servers their sum."""
        return self._table("engine")

    def gpu(self) -> ColumnTable:
        """Return a row for each sample of each GPU."""
        return self._table("gpu")

    def _table(self, name: str) -> ColumnTable:
        from servetop.reports.export.column_table import read_table

        return read_table(self.reader, name)
