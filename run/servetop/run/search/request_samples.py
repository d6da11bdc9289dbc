"""How many samples of each objective a request has, and how many of these missed its limit.

A request that succeeded has all its samples. One that failed missed each objective on a share, and is not in a mean.
Of a request that is still in flight, or that the client cancelled, only the samples count that are known: a latency
misses its limit as soon as the limit has passed, and from then on has in a mean what the request has waited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_per_output_token, times_to_first_token
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.units import US_PER_S
from servetop.recordings.read.request_chunks import Chunks
from servetop.run.search.objective_text import ERROR_RATE, GOODPUT
from servetop.run.search.search_evidence import WAITED, LoadObjective

Samples = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Counted and missed samples of each request, their sum in seconds, which is 0 for an objective on a share, and the
level: ln(latency / limit), NaN if the objective is not on a percentile of a latency of requests."""
_Counts = tuple[FloatArray, FloatArray, FloatArray]
_FAILED_LEVEL = 5.0
"""Level of a request that failed: beyond any limit."""
_LEAST_LATENCY = 1e-6
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestTimes:
    """Requests as far as they are known `at` a time; arrays of shape (requests,), NaN is unknown."""

    at: FloatArray
    """The end of the request, or the time as of which it is in flight."""
    sent: FloatArray
    first_token_at: FloatArray
    first_output_at: FloatArray
    """First token of the answer; that of the request without reasoning."""
    later_tokens: FloatArray
    """Tokens after those of the first chunk; NaN if unknown."""
    ok: BoolArray
    failed: BoolArray
    chunks: Chunks | None = None
    """Needed for ITL; None for requests in flight."""

    @property
    def latencies(self) -> dict[str, FloatArray]:
        """Return the values in seconds of requests that ended; NaN if they have none."""
        ttft = times_to_first_token(self.sent, self.first_token_at)
        e2el = np.where(self.ok, end_to_end_latencies(self.sent, self.at), np.nan)
        return {
            "ttft": ttft,
            "ttfot": times_to_first_token(self.sent, self.first_output_at),
            "e2el": e2el,
            "tpot": times_per_output_token(ttft, e2el, self.later_tokens),
        }

    @property
    def at_least(self) -> dict[str, FloatArray]:
        """Return lower bounds of the latencies that are unknown yet, in seconds."""
        waited = self.at - self.sent
        return dict.fromkeys(WAITED, waited)


def request_samples(
    requests: RequestTimes, objectives: Sequence[LoadObjective], *, goodput: Mapping[str, float]
) -> list[Samples]:
    """Return the samples of each objective."""
    return [_samples(requests, each, goodput) for each in objectives]


def _samples(requests: RequestTimes, objective: LoadObjective, goodput: Mapping[str, float]) -> Samples:
    nothing, none = np.zeros(requests.at.shape), np.full(requests.at.shape, np.nan)
    if objective.metric == "itl":
        counted, missed, sums, levels = *_token_gaps(requests, objective), none
    elif objective.metric == ERROR_RATE:
        counted, missed, sums, levels = requests.ok.astype(np.float64), nothing, nothing, none
    elif objective.metric == GOODPUT:
        counted, missed, sums, levels = *_within_all(requests, goodput), none
    else:
        counted, missed, sums, levels = *_latency(requests, objective), _levels(requests, objective)
    if objective.mean:
        kept = ~requests.failed
        return kept * counted, kept * missed, kept * sums, none
    counted = np.where(requests.failed, np.maximum(counted, 1.0), counted)
    return counted, np.where(requests.failed, counted, missed), nothing, levels


def _latency(requests: RequestTimes, objective: LoadObjective) -> _Counts:
    limit = objective.limit or np.inf
    values, bounds = requests.latencies[objective.metric], requests.at_least.get(objective.metric)
    if bounds is not None:
        overdue = np.isnan(values) & (bounds > limit) & ~requests.ok
        values = np.where(overdue, bounds, values)
    return _judged(values, objective)


def _levels(requests: RequestTimes, objective: LoadObjective) -> FloatArray:
    """Return ln(latency / limit), or that of the time that a request in flight has waited."""
    values, bounds = requests.latencies[objective.metric], requests.at_least.get(objective.metric)
    if bounds is not None:
        values = np.where(np.isnan(values) & ~requests.ok, bounds, values)
    levels = np.log(np.maximum(values, _LEAST_LATENCY) / (objective.limit or np.inf))
    return np.where(requests.failed, _FAILED_LEVEL, levels)


def _judged(values: FloatArray, objective: LoadObjective) -> _Counts:
    """Return one sample for each known value: whether it is beyond the limit."""
    known, limit = ~np.isnan(values), objective.limit or np.inf
    values = np.where(known, values, 0.0)
    return known.astype(np.float64), (values > limit).astype(np.float64), values


def _within_all(requests: RequestTimes, goodput: Mapping[str, float]) -> _Counts:
    """Return one sample for each request that ended, or of which one of the objectives of `--goodput` is missed."""
    missed = np.zeros(requests.at.shape, dtype=np.bool_)
    values, bounds = requests.latencies, requests.at_least
    for metric, limit in goodput.items():
        missed |= values[metric] > limit
        if metric in bounds:
            missed |= np.isnan(values[metric]) & (bounds[metric] > limit) & ~requests.ok
    counted = requests.ok | missed
    return counted.astype(np.float64), missed.astype(np.float64), np.zeros(missed.shape)


def _token_gaps(requests: RequestTimes, objective: LoadObjective) -> _Counts:
    """Return the later tokens of successful requests: each has the gap before its chunk / the tokens of that."""
    nothing = np.zeros(requests.at.shape)
    chunks, limit = requests.chunks, objective.limit or np.inf
    if chunks is None or not chunks.micros.size:
        return nothing, nothing, nothing
    owner = np.repeat(np.arange(chunks.counts.size), chunks.counts)
    later = np.ones(owner.shape, dtype=np.bool_)
    later[np.flatnonzero(np.diff(owner, prepend=-1))] = False
    later &= requests.ok[owner] & (chunks.tokens > 0) & ~np.isnan(requests.later_tokens[owner])
    owner, seconds, tokens = owner[later], chunks.micros[later] / US_PER_S, chunks.tokens[later].astype(np.float64)
    beyond = np.where(seconds / tokens > limit, tokens, 0.0)
    size = requests.at.size
    sums = (np.bincount(owner, each, minlength=size).astype(np.float64) for each in (tokens, beyond, seconds))
    return next(sums), next(sums), next(sums)
