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
from servetop.analysis.judgement.signals import ticks_of
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.config import WorkloadConfig
from servetop.core.histogram import LogHistogram
from servetop.core.tick import TICK_SECONDS

MIN_SECONDS = 5.0
"""Minimum time with waiting requests from which a capacity is computed."""
KEPT_SHARE = 0.95
"""Fraction of the requests that must keep the objective at a sustainable rate."""
_MOST_TICKS = 4_000
_MOST_WINDOWS = 400
_MIN_TOKENS = 5
"""Minimum first tokens in a window for their median to count."""
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
    """Mean of the squared coefficients of variation of the times between arrivals and of the service."""


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


def batch_service(run: TickHistory, capacity: Capacity, workload: WorkloadConfig, until: float) -> ServiceTimes | None:
    """Return the service of a batch, with ITL = a + b·n fitted to the ticks; None without the inputs."""
    base, stop = base_ttft(run, capacity.start), run.up_to(until)
    lengths = run.histogram("output_len", start=0, stop=stop)
    start = max(0, stop - _MOST_TICKS)
    running, clients = run.column("running", start=start, stop=stop), [tick.client for tick in run.ticks[start:stop]]
    weights = np.array([client.itl.count for client in clients], dtype=np.float64)
    totals = np.array([client.itl.total for client in clients], dtype=np.float64)
    known = (weights > 0) & (running > 0)
    if math.isnan(base) or not capacity.running >= 1 or not lengths.buckets.size or not known.any():
        return None
    slope, intercept = _line(running[known], totals[known] / weights[known], weights[known])
    itl = np.maximum(intercept + slope * np.arange(1, max(1, round(capacity.running)) + 1), 1e-6)
    variability = (_arrival_variability(workload) + _variability(lengths)) / 2
    return ServiceTimes(base=base, seconds=base + lengths.mean * itl, variability=variability)


def prefill_service(
    run: TickHistory, capacity: Capacity, workload: WorkloadConfig, until: float
) -> ServiceTimes | None:
    """Return the service of one prompt after another; None without a TTFT before the overload."""
    base, prompts = base_ttft(run, capacity.start), run.histogram("input_len", start=0, stop=run.up_to(until))
    if math.isnan(base):
        return None
    variability = (_arrival_variability(workload) + _variability(prompts)) / 2
    return ServiceTimes(base=base, seconds=np.array([1 / capacity.rate]), variability=variability)


def base_ttft(run: TickHistory, until: float) -> float:
    """Return the smallest median of TTFT over ten seconds before a time; NaN without enough first tokens."""
    width, stop = ticks_of(10), run.first_from(until)
    starts = range(0, stop, width)[-_MOST_WINDOWS:]
    windows = [run.histogram("ttft", start=low, stop=min(low + width, stop)) for low in starts]
    return min((each.percentile(50) for each in windows if each.count >= _MIN_TOKENS), default=math.nan)


def _arrival_variability(workload: WorkloadConfig) -> float:
    """Return the squared coefficient of variation of the times between arrivals; 1 if unknown."""
    if workload.arrivals.startswith("constant"):
        return 0.0
    return 1 / workload.burstiness if workload.burstiness > 0 and not workload.arrivals else 1.0


def _variability(lengths: LogHistogram) -> float:
    """Return the squared coefficient of variation, by the distance of two percentiles of a normal distribution."""
    if not lengths.buckets.size:
        return 0.0
    return float(((lengths.percentile(84) - lengths.percentile(16)) / 2 / lengths.mean) ** 2)


def sustainable_rate(
    times: ServiceTimes, capacity: Capacity, objective: float, *, kept_share: float = KEPT_SHARE
) -> float:
    """Return the largest rate at which a fraction of the requests get their first token within `objective` seconds."""
    wait = objective - times.base
    if wait <= 0:
        return 0.0
    low, high = 0.0, capacity.rate
    while high - low > _PRECISION * capacity.rate:
        middle = (low + high) / 2
        if _late_share(times, capacity.rate, middle, wait) <= 1 - kept_share:
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
    if not times.variability:
        return 0.0
    return float(waits * math.exp(-(capacity - rate) * wait / times.variability))


def _line(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of a weighted line, with a slope of at least 0."""
    mean_x, mean_y = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = np.average((x - mean_x) ** 2, weights=weights)
    slope = 0.0 if spread <= 0 else max(float(np.average((x - mean_x) * (y - mean_y), weights=weights) / spread), 0.0)
    return slope, float(mean_y - slope * mean_x)
