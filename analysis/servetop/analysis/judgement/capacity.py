"""The capacity of an engine under a run's workload, and the largest rate that keeps an objective on TTFT.

The capacity is the throughput while requests wait, so that a ramp's own delay does not matter. The sustainable rate
follows from a birth-death model of the batch: with n sequences running, a request takes as long as the prefill and its
output tokens at the ITL that was measured with n running; above the largest batch the engine completes requests at its
capacity. The waiting time beyond the batch is exponential (Erlang C; Allen and Cunneen's correction for output lengths
that vary less or more than exponentially, in Allen, "Probability, Statistics, and Queueing Theory", 1990).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.judgement.detectors import SHORT_QUEUE
from servetop.analysis.judgement.overload import Overload
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.tick import TICK_SECONDS

MIN_SECONDS = 5.0
"""Minimum time with waiting requests from which a capacity is computed."""
KEPT_SHARE = 0.95
"""Fraction of the requests that must keep the objective at a sustainable rate."""
_MOST_TICKS = 4_000
_PRECISION = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the engine completed while requests waited."""

    rate: float
    """Requests/s."""
    start: float
    until: float
    """The period of the evidence, seconds of the run."""
    running: float
    """Mean sequences in the batch; NaN if not exported."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServiceTimes:
    """Seconds that a request spends in the batch, by the number of sequences that run."""

    base: float
    """Seconds from sent to first token without a queue."""
    seconds: FloatArray
    """Entry n-1 is for n running sequences; shape (largest batch,)."""
    variability: float
    """Squared coefficient of variation of the output lengths."""


def capacity_of(overload: Overload, history: TickHistory, until: float) -> Capacity | None:
    """Return the capacity during an overload; None if requests waited for less than MIN_SECONDS."""
    end = until if overload.end is None else min(overload.end, until)
    first, stop = history.first_from(overload.begin), min(history.up_to(end), history.first_from(overload.begin) + 2400)
    waiting = history.column("waiting", start=first, stop=stop)
    busy = np.isnan(waiting) | (waiting > SHORT_QUEUE)
    seconds = float(busy.sum()) * TICK_SECONDS
    if seconds < MIN_SECONDS:
        return None
    tokens = float(history.column("output_tokens", start=first, stop=stop)[busy].sum())
    completed = float(history.column("ok", start=first, stop=stop)[busy].sum())
    length = mean_output(history, until)
    rate = tokens / length / seconds if length > 0 else completed / seconds
    running = history.column("running", start=first, stop=stop)[busy]
    return Capacity(
        rate=rate,
        start=overload.begin,
        until=history.ticks[stop - 1].end,
        running=float(np.nanmean(running)) if not np.isnan(running).all() else math.nan,
    )


def mean_output(history: TickHistory, until: float) -> float:
    """Return the mean output tokens of the successful requests that ended by `until`; NaN if none did."""
    return history.histogram("output_len", start=0, stop=history.up_to(until)).mean


def service_times(history: TickHistory, capacity: Capacity, until: float) -> ServiceTimes | None:
    """Fit ITL = a + b·n to the ticks; None without running sequences, or without ITL and TTFT."""
    stop = history.up_to(until)
    calm = history.histogram("ttft", start=0, stop=history.first_from(capacity.start))
    lengths = history.histogram("output_len", start=0, stop=stop)
    if not capacity.running >= 1 or not calm.buckets.size or not lengths.buckets.size:
        return None
    running = history.column("running", start=max(0, stop - _MOST_TICKS), stop=stop)
    clients = [tick.client for tick in history.ticks[max(0, stop - _MOST_TICKS) : stop]]
    weights = np.array([client.itl.count for client in clients], dtype=np.float64)
    totals = np.array([client.itl.total for client in clients], dtype=np.float64)
    known = (weights > 0) & (running > 0)
    if not known.any():
        return None
    slope, intercept = _line(running[known], totals[known] / weights[known], weights[known])
    largest = max(1, round(capacity.running))
    itl = np.maximum(intercept + slope * np.arange(1, largest + 1), 1e-6)
    base = calm.percentile(50)
    seconds = base + lengths.mean * itl
    spread = lengths.percentile(84) - lengths.percentile(16)  # two standard deviations of a normal distribution
    return ServiceTimes(base=base, seconds=seconds, variability=float((spread / 2 / lengths.mean) ** 2))


def sustainable_rate(times: ServiceTimes, capacity: Capacity, objective: float) -> float:
    """Return the largest rate at which KEPT_SHARE of the requests get their first token within `objective` seconds."""
    wait = objective - times.base
    if wait <= 0:
        return 0.0
    low, high = 0.0, capacity.rate
    while high - low > _PRECISION * capacity.rate:
        middle = (low + high) / 2
        if _late_share(times, capacity.rate, middle, wait) <= 1 - KEPT_SHARE:
            low = middle
        else:
            high = middle
    return low


def _late_share(times: ServiceTimes, capacity: float, rate: float, wait: float) -> float:
    """Return the fraction of requests that wait for longer than `wait` at a rate below the capacity."""
    running = np.arange(1, times.seconds.size + 1)
    speeds = running / times.seconds
    speeds *= capacity / speeds[-1]  # in agreement with what was measured at the full batch
    logs = np.concatenate([[0.0], np.cumsum(np.log(rate) - np.log(speeds))])
    states = np.exp(logs - logs.max())
    load = rate / capacity
    tail = states[-1] / (1 - load)
    waits = tail / (states[:-1].sum() + tail)
    return float(waits * math.exp(-2 / (1 + times.variability) * (capacity - rate) * wait))


def _line(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of a weighted line, with a slope of at least 0."""
    mean_x, mean_y = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = np.average((x - mean_x) ** 2, weights=weights)
    slope = 0.0 if spread <= 0 else max(float(np.average((x - mean_x) * (y - mean_y), weights=weights) / spread), 0.0)
    return slope, float(mean_y - slope * mean_x)
