"""A recording as Python reads it: results, and tables of NumPy arrays."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from servetop.reports.plug_ins.recording_view import RecordingView

if TYPE_CHECKING:
    from servetop.run.search.search_result import SearchResult


class Recording(RecordingView):
    """One recording, opened for reading: a context manager, or close it after use. For one thread at a time.

    Everything is read when it is asked for, so a run that is still being recorded may be asked again.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.reader.close()

    def answers(self) -> SearchResult:
        """Return the answers of a search, with their intervals; UsageError for the recording of another run."""
        from servetop.core.errors import UsageError
        from servetop.run.search.search_result import search_result

        if self.config.search is None:
            raise UsageError(f"{self.reader.name} is not the recording of a search: servetop search writes one")
        return search_result(self.reader, self.summary())

    def report(self, *, prices: Sequence[str] = ()) -> str:
        """Return the page that `servetop report` writes, as HTML that needs no network."""
        from servetop.run.search.result_page import recording_html

        return recording_html(str(self.path), prices=prices)

    def export(self, form: str, target: str | Path, *, table: str = "requests", stage: int | None = None) -> list[Path]:
        """Write what `servetop export --format` writes to a file, or of several files to a folder; return their paths.

        UsageError for an unknown format, and for a recording that has nothing of it.
        """
        from servetop.reports.export.export_formats import ExportedPart, write_files
        from servetop.reports.export.whole_file import refuse_target
        from servetop.reports.plug_ins.exporters import export_format

        path = Path(target).expanduser()
        if not path.is_dir():
            refuse_target(path, instead="the name of another file", sources=[self.path])
        files = export_format(form).files(self.reader, ExportedPart(table=table, stage=stage))
        return list(write_files(files, path))

    def __repr__(self) -> str:
        return f"<recording {self.reader.name}: {self.reader.request_count():,} requests>"

    def _repr_html_(self) -> str:
        """Return the verdict and the story for a notebook."""
        from servetop.reports.summary.summary_lines import story_lines

        lines = "<br>".join(html.escape(each) for each in story_lines(self.story()))
        return f"<p>{html.escape(repr(self))}</p><p>{lines}</p>"
