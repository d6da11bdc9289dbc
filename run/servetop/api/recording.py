"""A recording as Python reads it: results, and tables of NumPy arrays."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from servetop.core.config import RunConfig

if TYPE_CHECKING:
    from servetop.analysis.summary.story_summary import StorySummary
    from servetop.analysis.summary.summary_types import RunSummary
    from servetop.recordings.read.reader import RecordingReader
    from servetop.reports.export.column_table import ColumnTable
    from servetop.run.search.search_result import SearchResult


class Recording:
    """One recording, opened for reading: a context manager, or close it after use. For one thread at a time.

    Everything is read when it is asked for, so a run that is still being recorded may be asked again.
    """

    def __init__(self, reader: RecordingReader) -> None:
        self.reader = reader
        """The rows of the file as events; its interface may change in any version."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.reader.close()

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

    def answers(self) -> SearchResult:
        """Return the answers of a search, with their intervals; UsageError for the recording of another run."""
        from servetop.core.errors import UsageError
        from servetop.run.search.search_result import search_result

        if self.config.search is None:
            raise UsageError(f"{self.reader.name} is not the recording of a search: servetop search writes one")
        return search_result(self.reader, self.summary())

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

    def report(self, *, prices: Sequence[str] = ()) -> str:
        """Return the page that `servetop report` writes, as HTML that needs no network."""
        from servetop.run.search.result_page import recording_html

        return recording_html(str(self.path), prices=prices)

    def _table(self, name: str) -> ColumnTable:
        from servetop.reports.export.column_table import read_table

        return read_table(self.reader, name)

    def __repr__(self) -> str:
        return f"<recording {self.reader.name}: {self.reader.request_count():,} requests>"

    def _repr_html_(self) -> str:
        """Return the verdict and the story for a notebook."""
        from servetop.reports.summary.summary_lines import story_lines

        lines = "<br>".join(html.escape(each) for each in story_lines(self.story()))
        return f"<p>{html.escape(repr(self))}</p><p>{lines}</p>"
