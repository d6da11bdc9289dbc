"""The columns and charts of a watch over time: the figures of one server, or a line for each of several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.exported.metric_values import metric_values, periods_between
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.series.spread_rates import spread_rates
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.events import GpuSample
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.page.chart_specs import CHARTS, ChartSpec, PlottedLine
from servetop.reports.page.time_columns import MOST_BINS, TimeColumns, time_columns

MOST_SERVERS = 8
"""Servers with lines of their own: as many as the page has colours and dashes."""
_COLOURS = 4
_WINDOW = 10.0
"""Seconds over which a quantile is computed, if a bin is not longer."""
_RATES = {
    "output_tokens": "engine_output_tokens",
    "prompt_tokens": "engine_prompt_tokens",
    "preemptions": "preemptions",
}
_OF_A_CLIENT = ("target", "in_flight", "queued")
_LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL", "queue_time": "time in the queue"}
_BY_SERVER: Sequence[tuple[str, str, str, str, bool]] = (
    ("tokens", "Throughput: output tokens per second", "rate", "output_tokens", False),
    ("queue", "Requests running", "count", "running", False),
    ("waiting", "Requests waiting", "count", "waiting", False),
    ("kv", "KV cache used", "share", "kv_usage", False),
    ("preemptions", "Preemptions per second", "rate", "preemptions", False),
    ("ttft", "TTFT p90 by the engine's histogram", "seconds", "ttft_p90", True),
    ("itl", "ITL p90 by the engine's histogram", "seconds", "itl_p90", True),
    ("e2el", "E2EL p90 by the engine's histogram", "seconds", "e2el_p90", True),
)
"""Name, title, unit, column, and whether the axis is logarithmic, of each chart of several servers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerHistory:
    """The recorded samples and series of one server."""

    name: str
    record: RunRecord
    """As if it was watched alone."""
    series: ScrapeHistory


def watched_columns(
    record: RunRecord, series: ScrapeHistory, gpus: Sequence[GpuSample] = (), *, most: int = MOST_BINS
) -> TimeColumns:
    """Return the columns of one server from its first metrics page on, without those that only a client has."""
    known = np.flatnonzero(~np.isnan(record.history.column("scrape_end")))
    since = record.history.end_of(int(known[0])) if known.size else 0.0
    time = _watched_time(record, gpus, since=since, most=most)
    columns = {name: values for name, values in time.columns.items() if not name.startswith(_OF_A_CLIENT)}
    return replace(time, columns={**columns, **_quantiles(record, series, columns["at"], seconds=time.seconds)})


def _watched_time(record: RunRecord, gpus: Sequence[GpuSample] = (), *, since: float, most: int) -> TimeColumns:
    """Return the gauges, and the rates of counters, each spread from one metrics page to the next."""
    time = time_columns(record.history, gpus, since=since, most=most, rates={}, latencies=())
    rates = spread_rates(record.history, _RATES.values(), at=time.columns["at"], seconds=time.seconds)
    return replace(time, columns={**time.columns, **{name: rates[counted] for name, counted in _RATES.items()}})


def recorded_watch_charts(
    reader: RecordingReader, record: RunRecord, *, most: int = MOST_BINS
) -> tuple[TimeColumns, Sequence[ChartSpec]]:
    """Return the columns and charts of a watch; of several servers those of their sums, which have no latencies."""
    series = ScrapeHistory()
    series.extend(each for each in reader.engine_series() if each.replica is None)
    return watched_columns(record, series, reader.gpu_samples(), most=most), SERVER_CHARTS


def _quantiles(record: RunRecord, series: ScrapeHistory, at: FloatArray, *, seconds: float) -> Mapping[str, FloatArray]:
    """Return p50 and p90 of each latency in seconds: those of each period, in all bins of it."""
    facts = record.header.engine
    specs = [] if facts is None else [spec for spec in exported_metrics(facts) if spec.name in _LATENCIES.values()]
    if not specs or not at.size or not len(series):
        return {}
    positions, place = _quantile_periods(series, at, seconds=seconds)
    found: dict[str, FloatArray] = {}
    names = {title: name for name, title in _LATENCIES.items()}
    for value in metric_values(specs, periods_between(series, positions)):
        if value.p90 is not None:
            name = names[value.spec.name.rstrip(":")]
            found[f"{name}_p50"], found[f"{name}_p90"] = value.values[place], value.p90[place]
    return found


def _quantile_periods(series: ScrapeHistory, at: FloatArray, *, seconds: float) -> tuple[Sequence[int], IntArray]:
    """Return the scrapes between which quantiles are computed, and the number of the period of each bin.

    Periods are of ten seconds, or of a bin; of a source with fewer scrapes than that, from each scrape to the next.
    """
    window, times = max(_WINDOW, seconds), series.times(range(len(series)))
    if times.size > 1 and float(np.median(np.diff(times))) > window:
        place = np.searchsorted(times, at) - 1
        return range(len(series)), np.clip(place, 0, times.size - 2)
    edges = np.arange(math.ceil((float(at[-1]) + seconds - float(at[0])) / window) + 1) * window + float(at[0])
    positions = [max(series.up_to(float(edge)) - 1, 0) for edge in edges]
    return positions, np.minimum(((at - at[0]) / window).astype(int), len(edges) - 2)


def _latency_chart(name: str, title: str) -> ChartSpec:
    return ChartSpec(
        name=name,
        title=f"{title}, by the engine's histogram",
        unit="seconds",
        logarithmic=True,
        lines=(
            PlottedLine(label="p50", column=f"{name}_p50", dashed=True),
            PlottedLine(label="p90", column=f"{name}_p90", colour=1),
        ),
    )


_OF_A_RUN = {each.name: each for each in CHARTS}
SERVER_CHARTS = (
    ChartSpec(
        name="tokens",
        title="Throughput: tokens per second",
        unit="rate",
        lines=(
            PlottedLine(label="output tok/s", column="output_tokens"),
            PlottedLine(label="prompt tok/s", column="prompt_tokens", colour=1),
        ),
    ),
    _latency_chart("ttft", "TTFT: time to first token"),
    ChartSpec(
        name="queue",
        title="Requests running and waiting",
        unit="count",
        lines=(
            PlottedLine(label="running", column="running", band=True),
            PlottedLine(label="waiting", column="waiting", colour=1, band=True),
        ),
    ),
    _latency_chart("queue_time", "Time in the queue"),
    _OF_A_RUN["kv"],
    _latency_chart("itl", "ITL: inter-token latency"),
    _latency_chart("e2el", "E2EL: end-to-end latency"),
    _OF_A_RUN["gpu"],
)
"""The charts of a watch of one server."""


def columns_of_servers(servers: Sequence[ServerHistory], *, most: int = MOST_BINS) -> TimeColumns:
    """Return the columns of the charts of several servers, `NAME_NUMBER` by the place of each; all over one time."""
    first = min((_first_read(each.record) for each in servers), default=0.0)
    found: dict[str, FloatArray] = {}
    seconds = 1.0
    for number, each in enumerate(servers):
        time = _watched_time(each.record, since=first, most=most)
        at, seconds = time.columns["at"], time.seconds
        columns = {**time.columns, **_quantiles(each.record, each.series, at, seconds=seconds)}
        found["at"] = at
        found |= {f"{name}_{number}": columns[name] for _, _, _, name, _ in _BY_SERVER if name in columns}
    return TimeColumns(seconds=seconds, columns=found)


def _first_read(record: RunRecord) -> float:
    known = np.flatnonzero(~np.isnan(record.history.column("scrape_end")))
    return record.history.end_of(int(known[0])) if known.size else math.inf


def charts_of_servers(servers: Sequence[ServerHistory]) -> Sequence[ChartSpec]:
    """Return a chart for each figure, with a line for each server."""
    return [
        ChartSpec(
            name=name,
            title=title,
            unit=unit,
            logarithmic=logarithmic,
            lines=[
                PlottedLine(
                    label=each.name, column=f"{column}_{number}", colour=number % _COLOURS, dashed=number >= _COLOURS
                )
                for number, each in enumerate(servers)
            ],
        )
        for name, title, unit, column, logarithmic in _BY_SERVER
    ]
