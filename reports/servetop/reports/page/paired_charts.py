"""The charts over time of two runs on one axis: seconds since the load of each began."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.reports.page.chart_specs import ChartSpec, PlottedLine
from servetop.reports.page.report_page import ReportPage
from servetop.reports.page.time_columns import TimeColumns

_CHARTS = (
    ("done", "load", "Completed requests per second", "rate"),
    ("output_tokens", "tokens", "Throughput: output tokens per second", "rate"),
    ("ttft_p99", "ttft", "TTFT p99: time to first token", "seconds"),
    ("tpot_p99", "tpot", "TPOT p99: time per output token", "seconds"),
    ("ttft_p50", "ttft", "TTFT p50", "seconds"),
    ("tpot_p50", "tpot", "TPOT p50", "seconds"),
    ("running", "running", "Requests running", "count"),
    ("waiting", "waiting", "Requests waiting", "count"),
    ("kv_usage", "kv", "KV cache used", "share"),
    ("gpu_power", "gpu", "GPU power", "watts"),
)
"""Column, name, title and unit of each chart; latencies are on a logarithmic axis."""


def paired_columns(pages: Mapping[str, ReportPage]) -> TimeColumns:
    """Return the columns of all runs from the beginning of their loads on."""
    since = {letter: page.record.load_since for letter, page in pages.items()}
    times = {letter: (page.time, 0.0 if math.isnan(since[letter]) else since[letter]) for letter, page in pages.items()}
    return columns_side_by_side(times, [name for name, *_ in _CHARTS])


def columns_side_by_side(times: Mapping[str, tuple[TimeColumns, float]], names: Sequence[str]) -> TimeColumns:
    """Return the columns of all letters, as `LETTER_NAME`, in the longest bins; after the end of one it is unknown.

    With the columns of each letter is the time in seconds that is 0 in the result.
    """
    seconds = max(time.seconds for time, _ in times.values())
    places = {letter: _places(time, since, seconds) for letter, (time, since) in times.items()}
    size = max((int(each[-1]) + 1 for each in places.values() if each.size), default=0)
    columns: dict[str, FloatArray] = {"at": (np.arange(size, dtype=np.float64) + 0.5) * seconds}
    for letter, (time, _) in times.items():
        for name in names:
            if name in time.known:
                columns[f"{letter}_{name}"] = _means(time.columns[name], places[letter], size=size)
    return TimeColumns(seconds=seconds, columns=columns)


def _places(time: TimeColumns, since: float, seconds: float) -> FloatArray:
    """Return the number of the bin of each value, counted from `since`."""
    return np.maximum(np.floor((time.columns["at"] - since) / seconds), 0.0)


def _means(values: FloatArray, places: FloatArray, *, size: int) -> FloatArray:
    """Return the mean of the known values of each bin; NaN without any."""
    known = ~np.isnan(values)
    positions = places[known].astype(np.int64)
    counts = np.bincount(positions, minlength=size)
    sums = np.bincount(positions, weights=values[known], minlength=size)
    with np.errstate(invalid="ignore"):
        found: FloatArray = np.where(counts > 0, sums / counts, math.nan)
    return found


def paired_charts(pages: Mapping[str, ReportPage]) -> list[ChartSpec]:
    """Return the charts over time with a line for each run that has the column."""
    return charts_side_by_side({letter: page.time for letter, page in pages.items()}, _CHARTS)


def charts_side_by_side(
    times: Mapping[str, TimeColumns], charts: Sequence[tuple[str, str, str, str]]
) -> list[ChartSpec]:
    """Return the charts (column, name, title, unit) with a line for each letter that has the column."""
    found = []
    for column, name, title, unit in charts:
        lines = [
            PlottedLine(label=letter, column=f"{letter}_{column}", colour=place, dashed=place > 0)
            for place, (letter, time) in enumerate(times.items())
            if column in time.known
        ]
        if lines:
            found.append(ChartSpec(name=name, title=title, unit=unit, lines=lines, logarithmic=unit == "seconds"))
    return found
