"""The charts of a page that are not over time: distributions of latencies, and latency against throughput."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from servetop.analysis.summary.summary_types import RunSummary
from servetop.analysis.sweep.batch_rows import grouped
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.units import MS_PER_S
from servetop.reports.page.latency_shapes import LABELS
from servetop.reports.page.line_chart import DASHES
from servetop.reports.page.report_page import ReportPage

_TITLE = "Share of requests (ITL: of tokens) at or below a latency"
LOAD_TITLE = "Latency of each stage against its throughput, req/s"
_AGAINST = (("ttft", "p99", 1, 9), ("ttft", "p50", 1, 9), ("tpot", "p99", 0, 6))
"""Metric, statistic, colour and size of the points of one run."""
_COMPARED = (("ttft", "p99", 9), ("tpot", "p99", 6))
"""Metric, statistic and size of the points of several runs, which have a colour each."""
_SWEEP_FIGURES: Mapping[str, Callable[[SweepCell], float | None]] = {
    "TTFT p99": lambda cell: cell.p99_ttft_ms,
    "TPOT p99": lambda cell: cell.p99_tpot_ms,
}


def distribution_charts(page: ReportPage) -> list[dict[str, object]]:
    """Return one chart with a line for each latency of a run; none without successful requests."""
    lines = [
        {"label": LABELS[name], "column": column, "colour": place, "dash": DASHES[place % len(DASHES)]}
        for place, (name, column) in enumerate(_curves(page).items())
    ]
    return [{"title": _TITLE, "shares": page.curves["shares"], "lines": lines}] if lines else []


def compared_distributions(pages: Mapping[str, ReportPage]) -> list[dict[str, object]]:
    """Return a chart for each latency that all runs have, with a line for each run, by its name."""
    first = next(iter(pages.values()))
    return [
        {
            "title": f"{LABELS[metric]}: share of {'tokens' if metric == 'itl' else 'requests'} at or below a latency",
            "shares": first.curves["shares"],
            "lines": [
                {"label": name, "column": _curves(page)[metric], "colour": place, "dash": DASHES[place % len(DASHES)]}
                for place, (name, page) in enumerate(pages.items())
            ],
        }
        for metric in _curves(first)
        if all(metric in _curves(page) for page in pages.values())
    ]


def _curves(page: ReportPage) -> Mapping[str, object]:
    found = page.curves["curves"]
    return found if isinstance(found, Mapping) else {}


def stage_points(summary: RunSummary) -> Mapping[str, Sequence[tuple[float, float, str]]]:
    """Return throughput (requests/s), latency (seconds) and label of each stage, by latency, such as `TTFT p99`."""
    found = {f"{LABELS[metric]} {statistic}": _points(summary, metric, statistic) for metric, statistic, *_ in _AGAINST}
    return {label: points for label, points in found.items() if points}


def load_charts(summaries: Mapping[str, RunSummary]) -> list[dict[str, object]]:
    """Return a chart of latencies (seconds) against throughput, a point for each stage; none with fewer than two loads.

    `summaries` are by the name of the run, empty for the only one. That of a sweep has a chart for each latency
    against the load that was asked for, with a line for each row of its matrix.
    """
    several = len(summaries) > 1
    sweep = None if several else next(iter(summaries.values())).sweep
    if sweep is not None and sweep.cells:
        return list(_sweep_charts(sweep))
    series = list(_compared_series(summaries) if several else _series(next(iter(summaries.values()))))
    loads = {point[0] for each in series for point in each["points"]}  # type: ignore[attr-defined]
    if len(loads) < 2:
        return []
    return [{"title": LOAD_TITLE + (" (large: TTFT, small: TPOT)" if several else ""), "series": series}]


def sweep_lines(sweep: SweepVerdict) -> Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]:
    """Return by latency and by row of the matrix (settings, batch size) the points of a sweep, in order of load.

    A point is a load and a latency in seconds.
    """
    names = {row.key: row.name for row in sweep.rows}
    rows = {names.get(key) or "engine's batch size": cells for key, cells in grouped(sweep.cells).items()}
    return {
        title: {name: sorted(_cell_points(cells, figure)) for name, cells in rows.items()}
        for title, figure in _SWEEP_FIGURES.items()
    }


def load_unit(sweep: SweepVerdict) -> str:
    """Return the unit of the loads of a sweep."""
    return "requests in flight" if sweep.cells[0].closed else "requests/s"


def _cell_points(
    cells: Sequence[SweepCell], figure: Callable[[SweepCell], float | None]
) -> Iterator[tuple[float, float]]:
    """Yield load and latency (seconds) of the cells that have both."""
    for cell in cells:
        latency = figure(cell)
        if latency is not None and latency > 0 and math.isfinite(cell.load):
            yield cell.load, latency / MS_PER_S


def _sweep_charts(sweep: SweepVerdict) -> Iterator[dict[str, object]]:
    """Yield a chart for each latency; none with fewer than two loads."""
    for title, rows in sweep_lines(sweep).items():
        lines = {name: points for name, points in rows.items() if points}
        if len({load for points in lines.values() for load, _ in points}) > 1:
            series = [_sweep_line(place, *each) for place, each in enumerate(lines.items())]
            yield {"title": f"{title} against load, {load_unit(sweep)}", "across": load_unit(sweep), "series": series}


def _sweep_line(place: int, name: str, points: Sequence[tuple[float, float]]) -> dict[str, object]:
    filled = place // len(DASHES) % 2 == 0
    return {
        "label": name if filled else f"{name} ○",
        "colour": place % len(DASHES),
        "size": 8,
        "filled": filled,
        "dash": DASHES[place % len(DASHES)],
        "points": [(load, latency, "") for load, latency in points],
    }


def _series(summary: RunSummary) -> Iterator[dict[str, object]]:
    known = stage_points(summary)
    for metric, statistic, colour, size in _AGAINST:
        label = f"{LABELS[metric]} {statistic}"
        if points := known.get(label):
            yield {"label": label, "colour": colour, "size": size, "filled": statistic == "p99", "points": points}


def _compared_series(summaries: Mapping[str, RunSummary]) -> Iterator[dict[str, object]]:
    for metric, statistic, size in _COMPARED:
        for place, (name, summary) in enumerate(summaries.items()):
            if points := _points(summary, metric, statistic):
                label = f"{name} {LABELS[metric]} {statistic}"
                yield {"label": label, "colour": place, "size": size, "filled": place == 0, "points": points}


def _points(summary: RunSummary, metric: str, statistic: str) -> Sequence[tuple[float, float, str]]:
    """Return throughput, latency and label of each stage that has both."""
    found = []
    for stage in summary.stages:
        requests = stage.measured.requests
        throughput, latency = requests.request_throughput, requests.latency(metric, statistic)
        if throughput is not None and latency is not None and latency > 0:
            found.append((throughput, latency / MS_PER_S, stage.label))
    return found
