"""Cells of a sweep with repeats: means with their intervals over starts of the engine."""

from __future__ import annotations

from rich.console import Group

from servetop.analysis.sweep.sweep_cell import CellIntervals, Interval, SweepCell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.text import formats
from servetop.reports.tables import cell, light_table, titled

_COLUMNS = ("tok/s", "req/s", "TTFT p99", "ITL p99")
_FIGURES = ("output_throughput", "request_throughput", "p99_ttft_ms", "p99_itl_ms")


def repeats_table(sweep: SweepVerdict) -> Group | None:
    """Return one row for each cell with repeats: `11.2 [10.7, 11.7]` and `of 3 starts`; None without such a cell."""
    repeated = [each for each in sweep.cells if len(each.stages) > 1]
    if not repeated:
        return None
    table = light_table("", *_COLUMNS, "mean")
    for each in repeated:
        table.add_row(cell(each.name), *(_figure(each, name) for name in _FIGURES), cell(each.mean_of))
    several = any(each.starts > 1 for each in repeated)
    about = "with 95 % intervals over starts" if several else "one start does not tell how starts differ"
    return titled(f"Cells with repeats (latency in ms; {about})", table)


def _figure(found: SweepCell, name: str) -> str:
    value: float | None = getattr(found, name)
    return formats.in_full(value) + _interval(found.intervals, name)


def _interval(intervals: CellIntervals | None, name: str) -> str:
    ends: Interval | None = None if intervals is None else getattr(intervals, name)
    return "" if ends is None else f" [{formats.in_full(ends[0])}, {formats.in_full(ends[1])}]"
