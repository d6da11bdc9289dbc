"""The stages of a run as tables: one row each, and batch size × request rate for a sweep."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence

from rich.console import Group
from rich.text import Text

from servetop.analysis.cells.attempts import AttemptState
from servetop.analysis.summary.summary_types import SkippedSummary, StageSummary, SteadySummary
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.core.config_values.cell_settings import settings_label
from servetop.core.text import formats
from servetop.reports.tables import cell, light_table, titled

FAILED, SKIPPED = "failed", "skipped"
UNSTEADY = "~"
"""Marks a figure whose stage had no steady state."""
PLOT_WIDTH = 100
"""Most cells of a plot."""
Figure = Callable[[StageSummary], float | None]
_RowName = tuple[str | None, int, int]
"""Settings, batch size (or concurrency where it has that meaning), and the concurrency limit if there are several."""


def _throughput(stage: StageSummary) -> float | None:
    return stage.measured.requests.output_throughput


GRIDS: Sequence[tuple[str, str, Figure]] = (
    ("Output throughput, tok/s", "output_throughput", _throughput),
    ("TTFT p99, ms", "p99_ttft_ms", lambda stage: stage.measured.requests.latency("ttft", "p99")),
    ("Preemptions", "preemptions", lambda stage: stage.preemptions),
)
"""Title, field of a SweepCell, and the same figure of a stage."""


def stages_table(stages: Sequence[StageSummary]) -> Group:
    """Return one row for each stage: totals, throughput and latencies."""
    columns = ("", "ok", "fail", "req/s", "tok/s", "TTFT\np50", "TTFT\np99", "ITL\np99", "preempt.", "steady\ns")
    energy = any(stage.measured.energy.millijoules_per_token is not None for stage in stages)
    table = light_table(*columns, *(("mJ/\ntok",) if energy else ()))
    for stage in stages:
        requests = stage.measured.requests
        latencies = (requests.latency("ttft", "p50"), requests.latency("ttft", "p99"), requests.latency("itl", "p99"))
        table.add_row(
            cell(stage.label + _remark(stage)),
            formats.exact(requests.completed),
            formats.exact(requests.failed),
            *map(formats.number, (requests.request_throughput, requests.output_throughput)),
            *map(formats.in_full, latencies),
            formats.exact(stage.preemptions),
            steady_seconds(stage.steady),
            *((formats.number(stage.measured.energy.millijoules_per_token),) if energy else ()),
        )
    return titled("Stages (latency in ms)", table)


def _remark(stage: StageSummary) -> str:
    repeat = f" #{stage.repeat + 1}" if stage.repeat else ""
    remarks = [] if stage.finished else [FAILED if _failed(stage) else "cut short"]
    remarks += [] if stage.counted else ["not counted"]
    remarks += [stage.steered] if stage.steered else []
    return f"{repeat} ({', '.join(remarks)})" if remarks else repeat


def _failed(stage: StageSummary) -> bool:
    return stage.outcome == AttemptState.FAILED


def failed_lines(stages: Sequence[StageSummary]) -> list[str]:
    """Return one line for each cell that could not be measured, with the reason."""
    return [f"{stage.label} failed: {stage.failure}" for stage in stages if _failed(stage) and stage.counted]


def grid_tables(
    stages: Sequence[StageSummary], skipped: Sequence[SkippedSummary] = (), cells: Sequence[SweepCell] = ()
) -> list[Group]:
    """Settings and batch size down, request rate across, one table for each figure; none with a single row.

    `cells` are those of a sweep, whose figures are means over starts of the engine.
    """
    names, measured = _axes(stages)
    rows = {name: _row(stages, name) for name in names}
    ended = {name: _skipped_rates(row, skipped) for name, row in rows.items()}
    rates = sorted({*measured, *(rate for found in ended.values() for rate in found)})
    if not rows or not measured:
        return []
    known = {number: each for each in cells for number in each.stages}
    figures = [(title, _mean_figure(known, name, figure)) for title, name, figure in GRIDS]
    return [_grid(title, figure, rows=rows, rates=rates, ended=ended) for title, figure in figures]


def _mean_figure(cells: Mapping[int, SweepCell], name: str, figure: Figure) -> Figure:
    """Return a function from a stage to the figure of its cell, or to its own if it is of none."""

    def mean(stage: StageSummary) -> float | None:
        found = cells.get(stage.stage)
        return figure(stage) if found is None else getattr(found, name)

    return mean


def _skipped_rates(row: Sequence[StageSummary], skipped: Sequence[SkippedSummary]) -> set[float]:
    """Return the rates that were skipped because a stage of the row had ended it."""
    stages = {stage.stage for stage in row}
    return {each.request_rate for each in skipped if each.stage in stages and each.request_rate is not None}


def grid_plot(stages: Sequence[StageSummary], *, width: int) -> Group | None:
    """Output throughput over the request rate, one curve for each row; None if there is no curve to draw."""
    names, rates = _axes(stages)
    if len(rates) < 2 or not names:
        return None
    from servetop.tui.drawing.report_plots import ValueAxis, curves

    named = {_row_title(name, word="batch "): _curve(_row(stages, name), rates) for name in names}
    measured = {name: points for name, points in named.items() if points}
    if not measured:
        return None
    drawn = curves(measured, across="requests/s", up=ValueAxis(name="tok/s"), width=width)
    return titled("Output throughput over request rate", Text(drawn))


def _curve(row: Sequence[StageSummary], rates: Sequence[float]) -> list[tuple[float, float]]:
    means = [(rate, _mean(row, rate, _throughput)) for rate in rates if math.isfinite(rate)]
    return [(rate, mean) for rate, mean in means if mean is not None]


def _axes(stages: Sequence[StageSummary]) -> tuple[list[_RowName], list[float]]:
    """Rows and request rates of the finished and the failed cells, ascending; empty with one batch size and setting.

    Rows are sorted by settings, as they come, and batch size.
    """
    finished = [stage for stage in stages if _in_grid(stage)]
    order = list(dict.fromkeys(stage.settings for stage in finished))
    names = sorted(_names(finished), key=lambda name: (order.index(name[0]), *name[1:]))
    rates = sorted({stage.request_rate for stage in finished if stage.request_rate is not None})
    return (names, rates) if len({name[:2] for name in names}) > 1 else ([], [])


def _names(stages: Sequence[StageSummary]) -> Mapping[_RowName, list[StageSummary]]:
    """Return the rows with their stages."""
    several = len({stage.max_concurrency for stage in stages if stage.max_num_seqs}) > 1
    rows: dict[_RowName, list[StageSummary]] = {}
    for stage in stages:
        limit = stage.max_concurrency if several and stage.max_num_seqs else None
        rows.setdefault((stage.settings, _batch(stage), limit or 0), []).append(stage)
    return rows


def _row_title(name: _RowName, *, word: str = "") -> str:
    settings, batch, limit = name
    named = f"{word}{batch}" if batch else ""
    return " · ".join(filter(None, (settings_label(settings), named, f"c{limit}" if limit else ""))) or "–"


def _batch(stage: StageSummary) -> int:
    return stage.max_num_seqs or stage.max_concurrency or 0


def _row(stages: Sequence[StageSummary], name: _RowName) -> list[StageSummary]:
    return _names([stage for stage in stages if _in_grid(stage)])[name]


def _in_grid(stage: StageSummary) -> bool:
    return stage.counted and not stage.steered and (stage.finished or _failed(stage))


def _grid(
    title: str,
    figure: Figure,
    *,
    rows: Mapping[_RowName, Sequence[StageSummary]],
    rates: Sequence[float],
    ended: Mapping[_RowName, Container[float]],
) -> Group:
    table = light_table("batch", *(f"{rate:g}" for rate in rates))
    for name, row in rows.items():
        cells = ((rate, _at(row, rate)) for rate in rates)
        texts = (SKIPPED if not at and rate in ended[name] else _grid_cell(row, rate, figure) for rate, at in cells)
        table.add_row(cell(_row_title(name)), *texts)
    marked = any(_mark(row, rate) for row in rows.values() for rate in rates)
    down = "settings and batch size" if any(name[0] for name in rows) else "batch size"
    legend = f"{down} down, requests/s across{f'; {UNSTEADY} not steady' if marked else ''}"
    return titled(f"{title} ({legend})", table)


def _grid_cell(row: Sequence[StageSummary], rate: float, figure: Figure) -> str:
    at = _at(row, rate)
    if at and not any(stage.finished for stage in at):
        return FAILED
    return formats.in_full(_mean(row, rate, figure)) + _mark(row, rate)


def _at(row: Sequence[StageSummary], rate: float) -> list[StageSummary]:
    return [stage for stage in row if (stage.request_rate or 0.0) == rate]


def _mark(row: Sequence[StageSummary], rate: float) -> str:
    return steady_mark([stage.steady for stage in _at(row, rate) if stage.finished])


def _mean(row: Sequence[StageSummary], rate: float, figure: Figure) -> float | None:
    values = [value for stage in _at(row, rate) if stage.finished and (value := figure(stage)) is not None]
    return sum(values) / len(values) if values else None


def steady_seconds(steady: SteadySummary) -> str:
    """Length of a stage's steady window."""
    return formats.UNKNOWN if steady.seconds is None else formats.number(steady.seconds)


def steady_mark(windows: Sequence[SteadySummary]) -> str:
    """Return a mark if one of the repetitions of a cell was not steady."""
    return f" {UNSTEADY}" if any(steady.start is None for steady in windows) else ""
