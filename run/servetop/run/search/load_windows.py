"""What each load of a search showed of one objective, without the transition from the load before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.run.search.latency_levels import LatencySamples
from servetop.run.search.queue_memory import QueueMemory, queue_memory
from servetop.run.search.sample_dependence import BlockCorrelation, block_correlation
from servetop.run.search.search_evidence import Evidence, Probe, Purpose
from servetop.run.search.window_mean import WindowMean, window_mean

_BLOCKS = 8
"""Blocks in which requests in flight are compared, to tell a trend from noise."""
_TREND_T = 2.4
"""Student's t of a slope over the blocks from which it is a trend (one-sided 97.5 % with 6 degrees of freedom)."""
_LEAST_RISE = 0.10
"""A trend changes the requests in flight by this share of their mean at least."""
_MOST_DISCARDED = 0.5
"""Share of a probe that may count as the transition."""
_LEAST_WAITED = 1e-6
"""Seconds since a request was due, at least."""
_BURST, _LONGEST_BURST = 0.5, 60.0
"""Seconds in which requests count as sent at once, and from which on they count, if fewer than half have ended."""
_SHARED = 0.99
"""Quantile of the times from due to done; what is due later before the end of a load is served at the next one too."""
_GAP = 1.0
"""Misses that were due within these seconds of each other count as one event."""


class Trend(Enum):
    """Whether the requests in flight have settled at this load."""

    SETTLED = "settled"
    RISING = "rising"
    FALLING = "falling"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWindow:
    """One load and what was seen of one objective while it was kept."""

    load: float
    begin: float
    """Time after the transition, seconds."""
    seconds: float
    counted: float
    """Samples whose outcome is known; in a closed loop of requests that were due long enough before its end to miss."""
    missed: float
    """Samples beyond the limit."""
    events: tuple[float, ...]
    """The number of missed samples in each event; misses that were due close together are one event."""
    trend: Trend
    in_flight: float
    """Mean requests in flight."""
    reached: float
    """Requests in flight at its end."""
    latency: float
    """Median seconds from due to done; NaN if nothing has ended."""
    mean: WindowMean | None = None
    """Mean of the samples, for an objective on a mean; None for others, and without samples."""
    samples: LatencySamples | None = field(default=None, compare=False)
    """The latencies, for an objective on a percentile of one; None for others, and without samples."""
    known: float = math.nan
    """Samples whose outcome is known, those of requests that were too short to miss included."""
    correlation: BlockCorrelation | None = field(default=None, compare=False)
    """How far samples depend on each other; None in an open loop, and if that is unknown."""
    memory: QueueMemory | None = field(default=None, compare=False)
    """How latencies depend on the requests in flight; None in a closed loop, and if that is unknown."""

    @property
    def share(self) -> float:
        """Share of the samples that missed the limit; NaN without any."""
        return self.missed / self.counted if self.counted else math.nan


def merged(probes: Sequence[Probe], *, purposes: Sequence[Purpose] = (Purpose.MEASURE,)) -> list[Probe]:
    """Return the probes of some purposes; those of equal load that followed each other on one server are joined."""
    found: list[Probe] = []
    for probe in (each for each in probes if each.purpose in purposes):
        kind = (probe.load, probe.purpose, probe.restarts)
        same = bool(found) and (found[-1].load, found[-1].purpose, found[-1].restarts) == kind
        if same and probe.begin - found[-1].end < _GAP:
            found[-1] = replace(found[-1], end=probe.end)
        else:
            found.append(probe)
    return found


def windows(
    evidence: Evidence, objective: int, *, probes: Sequence[Probe] | None = None, concurrency: bool = False
) -> list[LoadWindow]:
    """Return one window for each of the probes, in order of time; by default for each load that was measured.

    With `concurrency` loads are numbers of requests in flight; nothing counts before half of those have ended that were
    sent at once as the load began.
    """
    ended = _ends(evidence)
    chosen = merged(evidence.probes) if probes is None else probes
    return [_window(evidence, probe, objective, ended=ended, concurrency=concurrency) for probe in chosen]


def in_flight(evidence: Evidence, times: FloatArray, *, ended: FloatArray | None = None) -> FloatArray:
    """Return the requests in flight at ascending times; shape (times,). `ended` are their ends, ascending, if known."""
    ended = _ends(evidence) if ended is None else ended
    begun = np.searchsorted(evidence.due, times, side="right")
    return np.asarray(begun - np.searchsorted(ended, times, side="right"), dtype=np.float64)


def latencies_in(seconds: float, latency: float) -> float:
    """Return a time in latencies of a request; infinity if nothing has ended."""
    return seconds / latency if latency > 0 else math.inf


def _ends(evidence: Evidence) -> FloatArray:
    return np.sort(evidence.done[~np.isnan(evidence.done)])


def in_flight_at(evidence: Evidence, at: float) -> float:
    """Return the requests in flight at a time."""
    return float(in_flight(evidence, np.array([at]))[0])


def _window(evidence: Evidence, probe: Probe, objective: int, *, ended: FloatArray, concurrency: bool) -> LoadWindow:
    times = np.arange(probe.begin, probe.end, max(0.25, (probe.end - probe.begin) / 400))
    level = in_flight(evidence, times, ended=ended)
    begin = times[_transition(level)] if times.size else probe.begin
    settled = level[times >= begin]
    begin = max(begin, _burst_end(evidence, probe)) if concurrency else begin
    within = slice(*np.searchsorted(evidence.due, (begin, probe.end)))
    known = float(evidence.counted[objective][within].sum())
    decided = _decided(evidence, objective, within, end=probe.end) if concurrency else within
    counted, missed = evidence.counted[objective][decided], evidence.missed[objective][decided]
    sums = evidence.sums[objective][decided] if evidence.sums else np.zeros(counted.shape)
    took = (evidence.done - evidence.due)[within]
    latency = float(np.nanmedian(took)) if np.isfinite(took).any() else math.nan
    return LoadWindow(
        load=probe.load,
        begin=float(begin),
        seconds=probe.end - begin,
        counted=float(counted.sum()),
        missed=float(missed.sum()),
        events=tuple(_events(evidence.due[decided], missed)),
        trend=_trend(settled),
        in_flight=float(settled.mean()) if settled.size else 0.0,
        reached=float(level[-1]) if level.size else 0.0,
        latency=latency,
        samples=_samples(evidence, objective, within, end=probe.end, begin=float(begin), latency=latency),
        mean=window_mean(counted, sums, latencies=latencies_in(probe.end - begin, latency)),
        known=known,
        correlation=_correlation(evidence, objective, within, latency) if concurrency else None,
        memory=None
        if concurrency
        else _memory(evidence, objective, (begin, probe.end), settled, latency=latency, ended=ended),
    )


def _decided(evidence: Evidence, objective: int, within: slice, *, end: float) -> slice:
    """Return the requests of a load of which each, however long it lasts, has met or missed its limit by the end.

    Of later ones only the short ones are known to have met it, and the next load decides about the others.
    """
    if not evidence.decided or not evidence.decided[objective] > 0:
        return within
    last = int(np.searchsorted(evidence.due, end - evidence.decided[objective]))
    return slice(within.start, min(max(last, within.start), within.stop))


def _correlation(evidence: Evidence, objective: int, within: slice, latency: float) -> BlockCorrelation | None:
    if not evidence.levels:
        return None
    levels, ended = evidence.levels[objective][within], ~np.isnan(evidence.done[within])
    ended &= ~np.isnan(levels)
    return block_correlation(evidence.due[within][ended], levels[ended], latency=latency)


def _memory(
    evidence: Evidence,
    objective: int,
    ends: tuple[float, float],
    level: FloatArray,
    *,
    latency: float,
    ended: FloatArray,
) -> QueueMemory | None:
    """Return what requests show that were due long enough before the end to have ended at this load."""
    if not evidence.levels or math.isnan(latency):
        return None
    begin, end = ends
    within = slice(*np.searchsorted(evidence.due, ends))
    end -= float(np.nanquantile((evidence.done - evidence.due)[within], _SHARED))
    within = slice(*np.searchsorted(evidence.due, (begin, max(begin, end))))
    due, levels = evidence.due[within], evidence.levels[objective][within]
    seen, spans = ~np.isnan(levels), latencies_in(ends[1] - begin, latency)
    before = in_flight(evidence, due, ended=ended) - 1
    blocks = _correlation(evidence, objective, within, latency)
    return queue_memory(levels[seen], before[seen], level, spans=spans, blocks=blocks)


def _burst_end(evidence: Evidence, probe: Probe) -> float:
    """Return when half of the requests have ended that were sent at once as the load began; its begin without any.

    A load that was left before shows nothing, unless it was kept for long.
    """
    sent = slice(*np.searchsorted(evidence.due, (probe.begin, min(probe.begin + _BURST, probe.end))))
    done = evidence.done[sent]
    if not done.size:
        return probe.begin
    half = float(np.median(np.where(np.isnan(done), np.inf, done)))
    if half <= probe.end:
        return half
    return probe.end if probe.end - probe.begin < _LONGEST_BURST else probe.begin


def _samples(
    evidence: Evidence, objective: int, within: slice, *, begin: float, end: float, latency: float
) -> LatencySamples | None:
    if not evidence.levels:
        return None
    levels = evidence.levels[objective][within]
    due, took = evidence.due[within], (evidence.done - evidence.due)[within]
    seen = ~np.isnan(levels)
    if not seen.any():
        return None
    last = evidence.probes[-1].end
    if end < last and not np.isnan(took).all():
        seen &= due < end - np.fmin(np.nanquantile(took, _SHARED), evidence.decided[objective])
    waited = np.maximum(last - due[seen], _LEAST_WAITED)
    return LatencySamples(
        due=due[seen],
        levels=levels[seen],
        longest=np.maximum(np.log(waited / evidence.limits[objective]), levels[seen]),
        begin=begin,
        end=end,
        latency=latency,
    )


def _transition(level: FloatArray) -> int:
    """Return where the transition ends: the truncation with the least standard error of the rest (MSER-5)."""
    if level.size < 2 * _BLOCKS:
        return 0
    cuts = np.linspace(0, _MOST_DISCARDED * level.size, 11).astype(np.intp)
    errors = [float(level[cut:].var() / (level.size - cut)) for cut in cuts]
    return int(cuts[int(np.argmin(errors))])


def _trend(level: FloatArray) -> Trend:
    """Return whether requests in flight rise or fall over blocks by more than their noise."""
    if level.size < 2 * _BLOCKS:
        return Trend.SETTLED
    means = np.array([block.mean() for block in np.array_split(level, _BLOCKS)])
    at = np.arange(_BLOCKS) - (_BLOCKS - 1) / 2
    slope = float((at * means).sum() / (at**2).sum())
    rest = means - means.mean() - slope * at
    error = math.sqrt(float((rest**2).sum()) / (_BLOCKS - 2) / float((at**2).sum()))
    change = slope * _BLOCKS
    if abs(change) < max(_LEAST_RISE * float(means.mean()), 1.0) or abs(slope) < _TREND_T * error:
        return Trend.SETTLED
    return Trend.RISING if slope > 0 else Trend.FALLING


def _events(due: FloatArray, missed: FloatArray) -> list[float]:
    """Return how many samples missed the limit in each event."""
    at = np.flatnonzero(missed > 0)
    if not at.size:
        return []
    starts = np.concatenate(([0], np.flatnonzero(np.diff(due[at]) > _GAP) + 1))
    return [float(size) for size in np.add.reduceat(missed[at], starts)]
