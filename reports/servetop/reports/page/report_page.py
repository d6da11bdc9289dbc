"""What a page shows of one recording: the summary, and the columns that its charts and limits need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.exported.gpu_peaks import engine_gpus
from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.events import GpuSample
from servetop.recordings.format.schema import SEARCH_STATE
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.latency_shapes import distribution_curves, heat_maps
from servetop.reports.page.request_rows import RequestRows, request_rows
from servetop.reports.page.time_columns import TimeColumns, load_columns
from servetop.reports.summary.manifest_sections import manifest_sections
from servetop.reports.summary.request_floor import RequestFloor, TypicalRequest, request_floor
from servetop.reports.summary.summary import judged_summary
from servetop.tui.state.search_progress import SearchHistory, SearchProgress


class SearchTexts(NamedTuple):
    """The texts of a search on its page; empty for other runs."""

    answers: Sequence[str] = ()
    """A sentence for each `--slo`."""
    remarks: Sequence[str] = ()
    """What supports or limits them."""
    unfinished: bool = False
    """Whether the search was interrupted, so that it can be continued."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportPage:
    """One recording as a page."""

    name: str
    """The recording, as a command names it."""
    summary: RunSummary
    record: RunRecord
    texts: SearchTexts
    search: SearchProgress | None
    """The loads of a search and its answers at each decision; None for other runs."""
    manifest: Mapping[str, Mapping[str, str]]
    rows: RequestRows
    """The requests of the summary's totals."""
    curves: Mapping[str, object]
    heat: Mapping[str, object]
    time: TimeColumns
    gpus: Sequence[str]
    """The names of the GPUs, each once."""
    floor: RequestFloor | None
    """The least time that one request can take; None if the GPU, the model or their formats are unknown."""

    def run_data(self, letter: str) -> dict[str, object]:
        """Return the requests for the page's script, under a letter if there are several runs."""
        return {"name": letter, "duration": self.summary.requests.duration, "rows": self.rows.as_data()}


def report_page(
    reader: RecordingReader,
    *,
    name: str,
    prices: Sequence[str] = (),
    texts: SearchTexts | None = None,
    objectives: Mapping[str, float] | None = None,
) -> ReportPage:
    """Read what a page shows; `prices` replace the recorded ones. RecordingError or UsageError, in one line.

    `objectives` are limits (seconds by metric) at which requests are counted exactly, in place of the recorded ones.
    """
    limits = reader.header.config.goodput if objectives is None else objectives
    shapes: list[tuple[RequestRows, Mapping[str, object], Mapping[str, object], TypicalRequest]] = []

    def keep_shapes(requests: RequestColumns) -> None:
        rows = request_rows(requests, objectives=limits)
        shapes.append((rows, distribution_curves(requests), heat_maps(requests), TypicalRequest.of(requests)))

    summary, record = judged_summary(reader, prices=prices, totals=keep_shapes)
    ((rows, curves, heat, typical),) = shapes
    hit_rate = summary.measured.server.prefix_cache_hit_rate
    samples: Sequence[GpuSample] = reader.gpu_samples()
    return ReportPage(
        name=name,
        summary=summary,
        record=record,
        texts=texts or SearchTexts(),
        search=recorded_search(reader),
        manifest=manifest_sections(reader.header),
        rows=rows,
        curves=curves,
        heat=heat,
        time=load_columns(record, samples),
        gpus=sorted({each.name for each in samples}),
        floor=request_floor(reader.header, gpus=engine_gpus(samples), request=typical, hit_rate=hit_rate),
    )


def recorded_search(reader: RecordingReader) -> SearchProgress | None:
    """Return what a search knew at its end, as the screen has it; None for other runs."""
    history = SearchHistory(reader.header.config.search)
    history.fold(list(reader.stream(SEARCH_STATE)))
    ended = max((tick.end for tick in reader.ticks()[-1:]), default=0.0) if reader.end is None else reader.end.at
    return history.at(ended, stages=reader.stages(), notes=reader.notes())
