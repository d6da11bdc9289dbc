"""The capacity of an engine under a run's workload, and the largest rate that keeps an objective on TTFT.

The capacity is the throughput while requests wait, so that a ramp's own delay does not matter. The sustainable rate
follows from a birth-death model of the batch: with n sequences running, a request takes as long as the prefill and its
output tokens at the ITL that was measured with n running; above the largest batch the engine completes requests at its
capacity. The waiting time beyond the batch is exponential (Erlang C; Allen and Cunneen's correction for output lengths
that vary less or more than exponentially, in Allen, "Probability, Statistics, and Queueing Theory", 1990).

An engine that prefill limits may serve all prompts that wait before it decodes. Its output tokens come after the queue,
so the capacity is the first tokens by the time in which the engine also works off the batch that it has accumulated.
Long prompts need more of the time that the objective allows, so the prefill of each length has its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.overload import Overload
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.trailing import ticks_of
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.config import RunConfig, WorkloadConfig
from servetop.core.config_values.cell_workload import cell_workloads
from servetop.core.histogram import LogHistogram, bucket_values
from servetop.core.tick import TICK_SECONDS

MIN_SECONDS = 5.0
"""Minimum time with waiting requests from which a capacity is computed."""
KEPT_SHARE = 0.95
"""Fraction of the requests that must keep the objective at a sustainable rate."""
_MOST_OWED = 1.2
"""First tokens by the requests that the output tokens are worth, up to which a batch that still runs is ignored."""
_LONGEST = 2_400
"""Ticks of an overload that count; a batch stops growing long before."""
_MOST_TICKS = 4_000
_MOST_WINDOWS = 400
_MIN_TOKENS = 5
"""Minimum first tokens in a window for their median to count."""
_PRECISION = 1e-3
BURSTY = 2.0
"""Squared coefficient of variation of the times between arrivals, above which the model of the queue is less exact."""
_GAUGES = ("running", "in_flight", "waiting")


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
    is_upper_bound: bool = False
    """Whether the batch still owes many output tokens, for which the rate has no time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServiceTimes:
    """Seconds that a request spends in the batch, by the number of sequences that run."""

    base: float
    """Seconds from sent to first token without a queue, of the median request."""
    seconds: FloatArray
    """Entry n-1 is for n running sequences; shape (largest batch,)."""
    variability: float
    """Mean of the squared coefficients of variation of the times between arrivals and of the service."""
    prefills: FloatArray
    """The seconds that requests of several lengths need instead of `base`."""
    shares: FloatArray
    """The fraction of the requests of each."""
    peakedness: float = 1.0
    """Variance / mean of the requests in service if none had to wait: 1 with random arrivals, more with bursts."""


def capacity_of(overload: Overload, history: TickHistory, until: float) -> Capacity | None:
    """Return the capacity during an overload; None if requests waited for less than MIN_SECONDS."""
    end = until if overload.end is None else min(overload.end, until)
    first = history.first_from(overload.begin)
    stop = min(history.up_to(end), first + _LONGEST)
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
    return Capacity(rate=rate, start=overload.begin, until=history.ticks[stop - 1].end, running=_mean_known(running))


def prefill_capacity(overload: Overload, history: TickHistory, until: float) -> Capacity | None:
    """Return the capacity of an engine that prefill limits, until its batch is as small again as at the beginning."""
    end = until if overload.end is None else min(overload.end, until)
    first, last = history.first_from(overload.begin), history.up_to(until)
    queue_stop = min(history.up_to(end), first + _LONGEST)
    if queue_stop <= first:
        return None
    running, in_flight, waiting = (history.column(name, start=first, stop=last) for name in _GAUGES)
    known = running[~np.isnan(running)]
    small = np.fmin(running, in_flight) <= (known if known.size else in_flight)[0]  # the last scrape may be old
    drained = np.flatnonzero(small[queue_stop - 1 - first : _LONGEST])
    stop = queue_stop + int(drained[0]) if drained.size else queue_stop
    length = stop - first
    busy = np.isnan(waiting[:length]) | (waiting[:length] > SHORT_QUEUE) | ~small[:length]
    seconds = float(busy.sum()) * TICK_SECONDS
    if seconds < MIN_SECONDS:
        return None
    counts = np.array([tick.client.ttft.count for tick in history.ticks[first:stop]], dtype=np.float64)
    tokens = float(history.column("output_tokens", start=first, stop=stop)[busy].sum())
    begun = float(counts[busy].sum())
    return Capacity(
        rate=begun / seconds,
        start=overload.begin,
        until=history.ticks[stop - 1].end,
        running=_mean_known(running[:length][busy]),
        is_upper_bound=not drained.size and not begun * mean_output(history, until) <= _MOST_OWED * tokens,
    )


def _mean_known(values: FloatArray) -> float:
    """Return the mean of the known values; NaN without any."""
    return math.nan if np.isnan(values).all() else float(np.nanmean(values))


def mean_output(history: TickHistory, until: float) -> float:
    """Return the mean output tokens of the successful requests that ended by `until`; NaN if none did."""
    return history.histogram("output_len", start=0, stop=history.up_to(until)).mean


def batch_service(
    run: TickHistory, capacity: Capacity, workload: WorkloadConfig, until: float, *, replicas: int = 1
) -> ServiceTimes | None:
    """Return the service of a batch, with ITL = a + b·n fitted to the ticks; None without the inputs.

    The sequences that run are spread evenly over `replicas`, of which `capacity` is that of one.
    """
    base, stop = base_ttft(run, capacity.start), run.up_to(until)
    lengths = run.histogram("output_len", start=0, stop=stop)
    start = max(0, stop - _MOST_TICKS)
    running = run.column("running", start=start, stop=stop) / replicas
    clients = [tick.client for tick in run.ticks[start:stop]]
    weights = np.array([client.itl.count for client in clients], dtype=np.float64)
    totals = np.array([client.itl.total for client in clients], dtype=np.float64)
    known = (weights > 0) & (running > 0)
    if math.isnan(base) or not capacity.running >= 1 or not lengths.buckets.size or not known.any():
        return None
    slope, intercept = _line(running[known], totals[known] / weights[known], weights[known])
    itl = np.maximum(intercept + slope * np.arange(1, max(1, round(capacity.running)) + 1), 1e-6)
    arrivals, service = arrival_variability(workload), _variability(lengths)
    return ServiceTimes(
        base=base,
        seconds=base + lengths.mean * itl,
        variability=(arrivals + service) / 2,
        prefills=np.array([base]),
        shares=np.ones(1),
        peakedness=_peakedness(arrivals, service),
    )


def prefill_service(
    run: TickHistory, capacity: Capacity, workload: WorkloadConfig, until: float
) -> ServiceTimes | None:
    """Return the service of one prompt after another; None without a TTFT before the overload."""
    base, prompts = base_ttft(run, capacity.start), run.histogram("input_len", start=0, stop=run.up_to(until))
    if math.isnan(base) or not prompts.buckets.size:
        return None
    tokens, shares = bucket_values(prompts.buckets), prompts.counts / prompts.count
    variance = float(np.average((tokens / prompts.mean - 1) ** 2, weights=shares))
    return ServiceTimes(
        base=base,
        seconds=np.array([1 / capacity.rate]),
        variability=(arrival_variability(workload) + variance) / 2,
        prefills=base * tokens / prompts.percentile(50),
        shares=shares,
        peakedness=_peakedness(arrival_variability(workload), variance),
    )


def _peakedness(arrivals: float, service: float) -> float:
    """Return the peakedness of a load by its squared coefficients of variation; 1 for arrivals without bursts.

    In heavy traffic it is 1 + (arrivals - 1)·μ·∫(1 - G)², where μ·∫(1 - G)² is 1 for equal service times of
    distribution G and 1/2 for exponential ones (Eckberg, "Generalized peakedness of teletraffic processes", 1983).
    """
    return 1 + max(arrivals - 1, 0.0) / (1 + service)


def base_ttft(run: TickHistory, until: float) -> float:
    """Return the smallest median of TTFT over ten seconds before a time; NaN without enough first tokens.

    Of an overload from the start on, it is the smallest TTFT of the run: that of a request that came before the queue.
    """
    width, stop = ticks_of(10), run.first_from(until)
    starts = range(0, stop, width)[-_MOST_WINDOWS:]
    windows = [run.histogram("ttft", start=low, stop=min(low + width, stop)) for low in starts]
    medians = [each.percentile(50) for each in windows if each.count >= _MIN_TOKENS]
    if medians:
        return min(medians)
    every = run.histogram("ttft", start=0, stop=len(run))
    return every.percentile(0) if every.count >= _MIN_TOKENS else math.nan


def arrival_variability(workload: WorkloadConfig) -> float:
    """Return the squared coefficient of variation of the times between arrivals; 1 if unknown."""
    if workload.arrivals.startswith("constant"):
        return 0.0
    return 1 / workload.burstiness if workload.burstiness > 0 and not workload.arrivals else 1.0


def largest_variability(config: RunConfig) -> float:
    """Return the largest variability of the arrivals of a run's cells."""
    return max(arrival_variability(each) for each in cell_workloads(config.workload, config.stages))


def _variability(lengths: LogHistogram) -> float:
    """Return the squared coefficient of variation, by the distance of two percentiles of a normal distribution."""
    if not lengths.buckets.size:
        return 0.0
    return float(((lengths.percentile(84) - lengths.percentile(16)) / 2 / lengths.mean) ** 2)


def sustainable_rate(
    times: ServiceTimes, capacity: Capacity, objective: float, *, kept_share: float = KEPT_SHARE
) -> float:
    """Return the largest rate at which a fraction of the requests get their first token within `objective` seconds."""
    if objective <= times.base:
        return 0.0
    low, high = 0.0, capacity.rate
    while high - low > _PRECISION * capacity.rate:
        middle = (low + high) / 2
        if _late_share(times, capacity.rate, middle, objective) <= 1 - kept_share:
            low = middle
        else:
            high = middle
    return low


def _late_share(times: ServiceTimes, capacity: float, rate: float, objective: float) -> float:
    """Return the fraction of requests without a first token within `objective` seconds, at less than the capacity.

    Bursts are as if each of fewer servers took `peakedness` requests at once (Hayward's approximation).
    """
    batches = np.arange(1, times.seconds.size + 1)
    running = np.arange(1, int(batches.size / times.peakedness) + 1) * times.peakedness
    speeds = batches / times.seconds
    speeds *= capacity / speeds[-1]  # in agreement with what was measured at the full batch
    speeds = np.interp(running, batches, speeds)
    logs = np.concatenate([[0.0], np.cumsum(np.log(rate) - np.log(speeds))])
    states = np.exp(logs - logs.max())
    load = rate / capacity
    tail = states[-1] / (1 - load)
    waits = tail / (states[:-1].sum() + tail)
    left = objective - times.prefills
    if not times.variability:
        return float(times.shares[left < 0].sum())
    late = waits * np.exp(-(capacity - rate) * np.maximum(left, 0.0) / times.variability)
    return float(np.where(left < 0, 1.0, late) @ times.shares)


def _line(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of a weighted line, with a slope of at least 0."""
    mean_x, mean_y = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = np.average((x - mean_x) ** 2, weights=weights)
    slope = 0.0 if spread <= 0 else max(float(np.average((x - mean_x) * (y - mean_y), weights=weights) / spread), 0.0)
    return slope, float(mean_y - slope * mean_x)
