"""The columns of a page's charts over time: ticks in bins of at least a second, with the lowest and highest values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.events import GpuSample
from servetop.core.tick import TICK_SECONDS
from servetop.reports.page.packed_columns import packed

MOST_BINS = 1_200
_SHORTEST = round(1 / TICK_SECONDS)
_WINDOW = 40
"""Ticks of a window of percentiles: ten seconds, as on the screens."""
_RATES = {
    "sent": "sent",
    "done": "ok",
    "failed": "failed",
    "output_tokens": "output_tokens",
    "preemptions": "preemptions",
}
_GAUGES = ("in_flight", "queued", "running", "waiting", "kv_usage")
_LATENCIES = ("ttft", "tpot", "itl", "e2el")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeColumns:
    """Columns of equal length, one value for each bin; NaN is unknown."""

    seconds: float
    """Length of a bin."""
    columns: Mapping[str, FloatArray]
    """`at` is the middle of each bin, seconds; `NAME_low` and `NAME_high` are the lowest and highest of a gauge."""

    @property
    def known(self) -> frozenset[str]:
        """The columns with a value."""
        return frozenset(name for name, values in self.columns.items() if np.isfinite(values).any())

    def as_data(self) -> dict[str, object]:
        """Return it for the page's script, without columns that have no value."""
        known = self.known
        columns = {name: packed(values) for name, values in self.columns.items() if name in known}
        return {"seconds": self.seconds, "columns": columns}


def load_columns(record: RunRecord, gpus: Sequence[GpuSample], *, most: int = MOST_BINS) -> TimeColumns:
    """Return the columns of a run from the beginning of its load on, without its warm-up; of all of it without one."""
    since = record.load_since
    return time_columns(record.history, gpus, since=0.0 if math.isnan(since) else since, most=most)


def time_columns(
    history: TickHistory,
    gpus: Sequence[GpuSample] = (),
    *,
    since: float = 0.0,
    most: int = MOST_BINS,
    rates: Mapping[str, str] = _RATES,
    latencies: Sequence[str] = _LATENCIES,
) -> TimeColumns:
    """Return rates, gauges and percentiles from `since` seconds on in about `most` bins; rates are per second.

    `rates` are columns of counts by the names of their rates.
    """
    first = max(since, history.end_of(0) - TICK_SECONDS) if len(history) else 0.0
    until = history.end_of(-1) if len(history) else 0.0
    ticks = max(_SHORTEST, math.ceil((until - first) / TICK_SECONDS / most))
    seconds = ticks * TICK_SECONDS
    bins = history.bins(first - seconds, until=until + seconds, width=ticks)
    bins = [each for each in bins if each[1] > each[0] and history.end_of(each[1] - 1) > first]
    ends = [history.end_of(stop - 1) for _, stop in bins]
    columns = {"at": np.array(ends, dtype=np.float64) - seconds / 2}
    columns["target"] = _target(history, bins)
    for name, counted in rates.items():
        columns[name] = _each(history, counted, bins, np.nansum) / seconds
        columns[name][np.isnan(_each(history, counted, bins, np.nanmax))] = math.nan
    for name in _GAUGES:
        columns[name] = _each(history, name, bins, np.nanmean)
        columns[f"{name}_low"] = _each(history, name, bins, np.nanmin)
        columns[f"{name}_high"] = _each(history, name, bins, np.nanmax)
    for name in latencies:
        windows = [(max(0, stop - max(_WINDOW, ticks)), stop) for _, stop in bins]
        middle, _, high = np.array(history.sliding_percentiles(name, windows)).reshape(-1, 3).T
        columns[f"{name}_p50"], columns[f"{name}_p99"] = middle, high
    columns |= _gpu_columns(gpus, columns["at"], seconds=seconds)
    return TimeColumns(seconds=seconds, columns=columns)


def _each(
    history: TickHistory, name: str, bins: Sequence[tuple[int, int]], reduce: Callable[[FloatArray], float]
) -> FloatArray:
    """Return a figure of each bin's known values; NaN without any."""
    values = history.column(name)
    found = np.full(len(bins), math.nan)
    for place, (start, stop) in enumerate(bins):
        part = values[start:stop]
        part = part[~np.isnan(part)]
        if part.size:
            found[place] = reduce(part)
    return found


def _target(history: TickHistory, bins: Sequence[tuple[int, int]]) -> FloatArray:
    """Return the asked request rate; NaN without one, as in closed loops."""
    rates = _each(history, "request_rate", bins, np.nanmean)
    return np.where(np.isfinite(rates), rates, math.nan)


def _gpu_columns(samples: Sequence[GpuSample], at: FloatArray, *, seconds: float) -> dict[str, FloatArray]:
    """Return mean utilisation 0-1 over devices, and watts and bytes over all devices; none without samples."""
    if not samples or not at.size:
        return {}
    times = np.array([each.at for each in samples], dtype=np.float64)
    devices = np.array([each.index for each in samples], dtype=np.int64)
    bins = np.floor((times - (at[0] - seconds / 2)) / (seconds or 1.0)).astype(np.int64)
    wanted = {"gpu_utilisation": "utilisation", "gpu_power": "power", "gpu_memory": "memory_used"}
    places = np.round((at - at[0]) / seconds).astype(np.int64)
    found: dict[str, FloatArray] = {}
    for name, field in wanted.items():
        values = np.array([_number(getattr(each, field)) for each in samples], dtype=np.float64)
        per_device = [_means(values[devices == one], bins[devices == one], places) for one in np.unique(devices)]
        total = np.sum(per_device, axis=0)
        found[name] = total / len(per_device) if field == "utilisation" else total
    return found


def _means(values: FloatArray, bins: np.ndarray[tuple[int], np.dtype[np.int64]], places: FloatArray) -> FloatArray:
    """Return the mean of the known values of each bin; NaN without any."""
    size = int(places[-1]) + 1
    usable = ~np.isnan(values) & (bins >= 0) & (bins < size)
    counts = np.bincount(bins[usable], minlength=size)
    sums = np.bincount(bins[usable], weights=values[usable], minlength=size)
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.where(counts > 0, sums / counts, math.nan)
    return means[places.astype(np.int64)]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
