"""Puts the recordings of watches side by side: the server's own figures, for all servers and for each by its name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from servetop.analysis.comparison.watch_comparison import REMARK, ComparedServer, ComparedWatch, WatchComparison
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.exported.exported_summary import ExportedMetric, exported_summary
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.summary.watch_types import WatchedFigures, WatchedServer, WatchSummary
from servetop.analysis.summary.watched_figures import FAILING
from servetop.core.errors import UsageError
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.units import MS_PER_S
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_comparison import distinct_arms
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.replica_watches import replica_series
from servetop.reports.summary.watch_rows import error_rate_reason, mean_ms, milliseconds
from servetop.reports.summary.watch_summary import watch_summary

_LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL", "queue": "time in the queue"}
"""Histograms of the engine, by their names on the engine page."""
QUANTILES = {f"{each}_{key}_ms": (each, name) for key, name in _LATENCIES.items() for each in ("p50", "p90")}
"""Keys of their quantiles, with what they are of."""
_LIMITS = {"kv_bound": "KV-bound", "batch_bound": "batch-bound", "requests_wait": "requests wait", "failing": FAILING}

Look = Callable[[RecordingReader, RunRecord], None]
"""Takes an open watch, with its record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """The figures of one server, or of all servers of one watch together."""

    watched: WatchedFigures | None
    server: WatchedServer
    histograms: Mapping[str, ExportedMetric]
    """Histograms of latencies in seconds, by their names."""
    limited: bool = True
    """Whether its limits are known; not for several servers together."""


def watches_compared(recordings: Sequence[str]) -> list[Path]:
    """Return the recordings if all are of watches, else nothing.

    UsageError if only some are, if there is only one, or if one stands for several.
    """
    arms = distinct_arms(recordings)
    paths = [path for arm in arms for path in arm]
    watches = [path for path in paths if _is_watch(path)]
    if not watches:
        return []
    if other := next((path for path in paths if path not in watches), None):
        raise UsageError(f"{watches[0]} is a recorded watch, and {other} is a run: their figures cannot be compared")
    if any(len(arm) > 1 for arm in arms):
        raise UsageError("watches are not repeats of one load: name each by itself, without commas, and no folder")
    if len(paths) < 2:
        raise UsageError("a comparison needs two watches: name another one (servetop summary has the figures of one)")
    return paths


def _is_watch(path: Path) -> bool:
    with contextlib.closing(RecordingReader.open(path, examine=False)) as reader:
        return reader.header.config.watch is not None


def compare_watches(paths: Sequence[Path], *, look: Look | None = None) -> WatchComparison:
    """Return the figures of watches side by side; RecordingError if one cannot be read.

    `look` receives each while it is open, so that nothing is read twice.
    """
    watches, measured = [], []
    for number, path in enumerate(paths):
        with contextlib.closing(RecordingReader.open(path)) as reader:
            summary, found = _read(reader, look)
            date = datetime.fromtimestamp(reader.header.anchor.wall_epoch_s, tz=UTC).isoformat(timespec="seconds")
        measured.append(found)
        watches.append(
            ComparedWatch(
                letter=chr(ord("A") + number) if number < 26 else str(number + 1),
                recording=str(path),
                date=date,
                backend=summary.backend,
                version=summary.engine.version,
                model_id=summary.model_id,
                servers=max(len(found) - 1, 1),
                headline=summary.headline,
                error_rate_reason=error_rate_reason(summary.watched),
            )
        )
    names = dict.fromkeys(name for each in measured for name in each)
    servers = tuple(_compared(name, [each.get(name) for each in measured]) for name in names)
    return WatchComparison(remark=REMARK, watches=tuple(watches), servers=servers)


def _compared(name: str, measured: Sequence[_Measured | None]) -> ComparedServer:
    buckets = {key: [_bucket(each, key) for each in measured] for key in QUANTILES}
    known = {key: each for key, each in buckets.items() if any(each)}
    return ComparedServer(
        name=name,
        figures={key: tuple(figure(each) for each in measured) for key, figure in FIGURES.items()},
        at_least={key: tuple(None if each is None else each[0] for each in found) for key, found in known.items()},
        at_most={key: tuple(None if each is None else each[1] for each in found) for key, found in known.items()},
    )


def _read(reader: RecordingReader, look: Look | None) -> tuple[WatchSummary, dict[str, _Measured]]:
    """Return the summary and the figures; what they are computed from is released before the next watch is read."""
    record = recorded_run(reader)
    summary = watch_summary(reader, record=record)
    if look is not None:
        look(reader, record)
    return summary, _measured(reader, summary)


def _measured(reader: RecordingReader, summary: WatchSummary) -> dict[str, _Measured]:
    """Return what was counted by the name of each server, and by "" for all together."""
    exported = {each.name: each for each in summary.engine_metrics or () if each.p90 is not None}
    replicas, whole = summary.replicas or (), summary.watched
    found = {"": _Measured(watched=whole, server=summary.server, histograms=exported, limited=not replicas)}
    for each, (facts, series) in zip(replicas, replica_series(reader) if replicas else (), strict=True):
        histograms = _histograms(facts, series)
        found[each.name] = _Measured(watched=each.watched, server=each.server, histograms=histograms)
    return found


def _histograms(facts: EngineFacts | None, series: ScrapeHistory) -> Mapping[str, ExportedMetric]:
    specs = [] if facts is None else [spec for spec in exported_metrics(facts) if spec.name in _LATENCIES.values()]
    return {each.name: each for each in exported_summary(specs, series, start=0.0) or ()}


def _bucket(each: _Measured | None, key: str) -> tuple[float, float | None] | None:
    """Return the bounds in milliseconds of the bucket that is all that is known of a quantile, else None."""
    metric, value = _histogram(each, key)
    bucket = None if metric is None or value is None else metric.bucket(value)
    return None if bucket is None else milliseconds(bucket)


def _histogram(each: _Measured | None, key: str) -> tuple[ExportedMetric | None, float | None]:
    """Return the histogram of a quantile, and the quantile as interpolated, in seconds."""
    quantile, name = QUANTILES[key]
    metric = None if each is None else each.histograms.get(name)
    return metric, None if metric is None else metric.value if quantile == "p50" else metric.p90


_Figure = Callable[[_Measured | None], float | None]


def _itl_mean(each: _Measured | None) -> float | None:
    return None if each is None else mean_ms(each.histograms.get("ITL"))


def _watched(name: str) -> _Figure:
    return lambda each: None if each is None or each.watched is None else getattr(each.watched, name)


def _server(name: str) -> _Figure:
    return lambda each: None if each is None else getattr(each.server, name)


def _quantile(key: str) -> _Figure:
    def figure(each: _Measured | None) -> float | None:
        _, value = _histogram(each, key)
        return None if value is None or _bucket(each, key) is not None else value * MS_PER_S

    return figure


def _limited(name: str) -> _Figure:
    """Return a function for the share of the watched time in which a limit was reached.

    None for several servers, and for failed requests if the server counts none.
    """

    def figure(each: _Measured | None) -> float | None:
        if each is None or each.watched is None or not each.limited or not each.watched.seconds:
            return None
        if name == FAILING and each.watched.requests_failed is None:
            return None
        return sum(limit.seconds for limit in each.watched.limits if limit.name == name) / each.watched.seconds

    return figure


def _preemption_rate(each: _Measured | None) -> float | None:
    if each is None or each.watched is None or each.server.preemptions is None or not each.watched.seconds:
        return None
    return each.server.preemptions / each.watched.seconds


FIGURES: Mapping[str, _Figure] = {
    "seconds": _watched("seconds"),
    "request_throughput": _watched("request_throughput"),
    "output_throughput": _watched("output_throughput"),
    "prompt_throughput": _watched("prompt_throughput"),
    "error_rate": _watched("error_rate"),
    **{
        key: _quantile(key) if key in QUANTILES else _itl_mean if key == "mean_itl_ms" else _watched(key)
        for key in (f"{of}_{name}_ms" for name in _LATENCIES for of in ("mean", "p50", "p90"))
    },
    "max_running": _server("max_running"),
    "max_waiting": _server("max_waiting"),
    "max_kv_usage": _server("max_kv_usage"),
    "preemptions_per_s": _preemption_rate,
    "prefix_cache_hit_rate": _server("prefix_cache_hit_rate"),
    **{f"{key}_share": _limited(name) for key, name in _LIMITS.items()},
}
"""The compared figures: how to get each from one watch, by key."""
