"""The cells of a sweep as tables: settings and batch size down, load across."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from servetop.analysis.summary.summary_types import RunSummary
from servetop.analysis.sweep.batch_rows import grouped
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.analysis.sweep.sweep_text import objectives_text
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.text import formats
from servetop.reports.page.html_text import Markup, data_table, element
from servetop.reports.summary.reference_texts import ReferenceTable, reference_texts

_BEST, _MISSED, _UNSTEADY = "★", "✗", "~"
_Figure = Callable[[SweepCell], str]


def sweep_part(sweep: SweepVerdict | None) -> Markup | None:
    """Return the section with a table for each figure, and what its marks are; None for a run that is not a sweep."""
    if sweep is None or not sweep.cells:
        return None
    down = "settings and batch size" if any(cell.settings for cell in sweep.cells) else "batch size"
    legend = f"{down} down, {'requests in flight' if sweep.cells[0].closed else 'requests/s'} across; {_BEST} best cell"
    missed = f"; {_MISSED} under {formats.percent(sweep.kept_share, zeros='never')} within the limits"
    legend += f"{missed if sweep.objectives else ''}; {_UNSTEADY} no steady state"
    tables = [_table(sweep, title, partial(_text, sweep, figure=figure)) for title, figure in _figures(sweep)]
    return element(
        "section",
        element("h2", "Sweep"),
        element("p", legend, class_="note"),
        element("div", *tables, class_="tables"),
        *(part for each in reference_texts(sweep) for part in _reference(each)),
    )


def _reference(found: ReferenceTable) -> Iterator[Markup]:
    """Yield the table of what a study published, was measured and is simulated, and its notes."""
    yield data_table([each.replace("\n", " ") for each in found.columns], found.rows, caption=found.title)
    for note in found.notes:
        yield element("p", note, class_="note")


def recounted_table(summary: RunSummary) -> Markup | None:
    """Return the table of goodput within the limits of the reader, for the script of the page; None without a sweep."""
    sweep = summary.sweep
    if sweep is None or not sweep.cells:
        return None
    seconds = {stage.stage: stage.measured.requests.duration for stage in summary.stages}
    title = f"Goodput of each cell within these limits, req/s; {_BEST} best cell"
    shown = _table(sweep, title, partial(_recounted, seconds=seconds))
    return element("div", shown, id="recounted", data_kept_share=sweep.kept_share)


def _figures(sweep: SweepVerdict) -> list[tuple[str, _Figure]]:
    found: list[tuple[str, _Figure]] = [
        ("Output tokens/s", lambda cell: formats.number(cell.output_throughput)),
        ("TTFT p99, ms", lambda cell: formats.in_full(cell.p99_ttft_ms)),
        ("TPOT p99, ms", lambda cell: formats.in_full(cell.p99_tpot_ms)),
    ]
    if not sweep.objectives:
        return found
    limits = objectives_text(sweep.objectives)
    return [
        (f"Goodput within {limits}, req/s", lambda cell: formats.number(cell.request_goodput)),
        (f"Requests within {limits}", lambda cell: formats.percent(cell.share_within, zeros="never")),
        *found,
    ]


def _table(sweep: SweepVerdict, title: str, text: Callable[[SweepCell], object]) -> Markup:
    loads = sorted({(cell.closed, cell.load) for cell in sweep.cells})
    names = {row.key: row.name for row in sweep.rows}
    rows = []
    for key, cells in grouped(sweep.cells).items():
        by_load = {(cell.closed, cell.load): cell for cell in cells}
        texts = [text(by_load[load]) if load in by_load else "" for load in loads]
        rows.append((names.get(key) or "engine's batch size", *texts))
    return data_table(("", *(_load_name(load) for load in loads)), rows, caption=title)


def _recounted(cell: SweepCell, *, seconds: Mapping[int, float]) -> Markup:
    """Return a place for the goodput of a cell, whose stages took these seconds."""
    return element(
        "span",
        "–",
        data_recounted_stages=" ".join(map(str, cell.stages)),
        data_recounted_seconds=" ".join(f"{seconds.get(stage, math.nan):.6f}" for stage in cell.stages),
        data_recounted_batch=cell.max_num_seqs or 0,
    )


def _text(sweep: SweepVerdict, cell: SweepCell, *, figure: _Figure) -> object:
    """Return the figure of a cell with its marks; the best cell is bold."""
    best = cell == sweep.best
    marks = f"{_BEST if best else ''}{_MISSED if cell.kept is False else ''}{'' if cell.steady else _UNSTEADY}"
    text = f"{figure(cell)} {marks}".rstrip()
    return element("strong", text) if best else text


def _load_name(load: tuple[bool, float]) -> str:
    closed, value = load
    if math.isinf(value):
        return "∞"
    return f"c{value:g}" if closed else f"{value:g}"
