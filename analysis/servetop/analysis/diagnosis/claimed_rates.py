"""The rates that are claimed of an overloaded engine: those of the model, checked against what the run served."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.capacity import BURSTY, KEPT_SHARE, Capacity, base_ttft, largest_variability
from servetop.analysis.diagnosis.kept_load import MIN_SECONDS, UNCERTAIN, kept_rate, served_rate, work_error
from servetop.analysis.diagnosis.overload import Limit, Overload
from servetop.analysis.diagnosis.overload_rates import holds_too_few, overload_rates
from servetop.analysis.diagnosis.run_record import FEW_PAGES, RunRecord
from servetop.analysis.diagnosis.signals import replica_count

_BURST_SECONDS = 0.5
"""Delay of the metrics pages from which bursts come and go unseen."""
_CLEARLY = 1.2
"""Requests that are due during an overload of prompts / those completed, from which the prompts fill the engine."""
MODEL_ERROR = 0.75
"""Fraction of what a run itself served below which a rate of the model is not believed."""
_FAR_BELOW = 0.4
"""Sustainable rate / knee of an estimate, below which the errors of the model are hardly known, and were large."""
_FEWEST = 8.0
"""Fewest sequences in a full KV cache of which a rate is claimed: how many of fewer fit depends on their lengths."""
_MOST = 256.0
"""Most sequences of a replica that prefill limits of which a rate is claimed: no batch behind those errors was larger.

At the rate that is kept, far fewer run, and steps with fewer sequences take less time.
"""
_WAITED = 2.0
"""TTFT before an overload, relative to that without a queue, above which these requests waited for others already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRates:
    """The rates that a run claims, requests/s; None if unknown."""

    sustainable: float | None = None
    knee: float | None = None
    is_lower_bound: bool = False


def claimed_rates(limit: Limit, capacity: Capacity | None, main: Overload, run: RunRecord) -> ClaimedRates:
    """Return what the engine sustains by an overload; nothing without a capacity, or if too little completed.

    Nothing of a search either, whose answer is the rate within its own objectives.
    """
    if capacity is None or run.header.config.search is not None or _is_vague(limit, main, run):
        return ClaimedRates()
    return _modelled(limit, capacity, main, run)


def _is_vague(limit: Limit, main: Overload, run: RunRecord) -> bool:
    """Whether an overload does not show what the engine sustains.

    If a limit keeps requests at the client, the engine was not offered the rate. Old or rare pages do not tell when
    prompts wait, nor when bursts come and go; while a queue hardly grows, its prompts do not fill the engine. With
    bursty arrivals few completed requests tell nothing either, nor do the times of prompts, which wait for their own
    burst. A load of less than MIN_SECONDS has hardly filled the batch, and old pages describe another time than the
    client's figures. Otherwise the interval of a rate shows how sure it is.
    """
    facts = run.header.engine
    if _loaded_seconds(run) < MIN_SECONDS or (facts is not None and facts.page_age > FEW_PAGES):
        return True
    until = run.until if main.end is None else main.end
    first, stop = run.history.first_from(main.begin), run.history.up_to(until)
    completed = float(run.history.column("ok", start=first, stop=max(first, stop)).sum())
    if not completed or run.history.column("queued", start=first, stop=max(first, stop)).any():
        return True
    if largest_variability(run.header.config) <= BURSTY:
        if limit is Limit.RATE and run.sees_little:
            return True
        return (limit is Limit.RATE or run.sees_little) and not _is_clear(run, first, stop)
    if limit is Limit.RATE or run.page_delay > _BURST_SECONDS:
        return True
    return work_error(run, first, max(first, stop), completed) > UNCERTAIN


def _loaded_seconds(run: RunRecord) -> float:
    """Return the seconds from the start of the load until the last request was due."""
    due = np.flatnonzero(run.history.column("due"))
    return run.history.ticks[int(due.max(initial=0))].end - run.load_since


def _is_clear(run: RunRecord, first: int, stop: int) -> bool:
    """Whether clearly more requests were due than completed, until the last one was due."""
    due, done = (run.history.column(each, start=first, stop=max(first, stop)) for each in ("due", "ok"))
    loaded = int(np.flatnonzero(due).max(initial=-1)) + 1
    return float(due[:loaded].sum()) >= _CLEARLY * float(done[:loaded].sum())


def _modelled(limit: Limit, capacity: Capacity, main: Overload, run: RunRecord) -> ClaimedRates:
    """Return the rates of the model, raised to what the run itself served; only what it kept if that is far above.

    The error of the model was measured for an objective on TTFT alone: with others the rate is what the run kept.

    An engine whose blocks are held by something else no longer serves what it did before; nothing is claimed of one
    that runs fewer, or more, sequences than those of which the errors of the model are known, nor without a time in
    which no request waited.
    """
    few, base = holds_too_few(run, main), base_ttft(run.history, capacity.start)
    if _waited_before(limit, base, capacity, run) or (limit is Limit.KV and capacity.running < _FEWEST):
        return ClaimedRates()
    if limit is Limit.RATE and capacity.running > _MOST * replica_count(run.header.engine):
        return ClaimedRates()
    sustainable, knee = overload_rates(limit, capacity, run)
    if run.header.config.goodput.keys() - {"ttft"}:
        kept = kept_rate(run, at=main.begin)
        return ClaimedRates(sustainable=kept, knee=knee, is_lower_bound=kept is not None)
    if sustainable is not None and knee is not None and sustainable < _FAR_BELOW * knee:
        return ClaimedRates(knee=knee)
    if limit is not Limit.RATE and _long_prompts_miss(base, run):
        return ClaimedRates(knee=knee)
    served = 0.0 if few else served_rate(run, at=main.begin)
    if sustainable is None or sustainable >= served:
        return ClaimedRates(sustainable=sustainable, knee=knee)
    if sustainable < served * MODEL_ERROR:
        kept = kept_rate(run, at=main.begin)
        return ClaimedRates(sustainable=kept, is_lower_bound=kept is not None)
    return ClaimedRates(sustainable=served, knee=None if knee is None else max(knee, served))


def _waited_before(limit: Limit, base: float, capacity: Capacity, run: RunRecord) -> bool:
    """Whether requests waited already before an overload, so that `base`, in seconds, is not the TTFT without a queue.

    That is about the time in which prompts are computed during the overload if they limit the engine; otherwise the
    TTFT of the fastest requests, whose prompts are as much shorter as the short ones are than the median.
    """
    if limit is Limit.RATE:
        return base * capacity.rate > _WAITED * replica_count(run.header.engine)
    prompts, ttft = (run.history.histogram(name, start=0, stop=len(run.history)) for name in ("input_len", "ttft"))
    return base * prompts.percentile(5) > _WAITED * ttft.percentile(5) * prompts.percentile(50)


def _long_prompts_miss(base: float, run: RunRecord) -> bool:
    """Whether the longest prompts, as many as may miss the objective, need more time than that without any queue.

    The model of a batch has one prefill time, `base`: seconds to the first token of the median prompt.
    """
    prompts = run.history.histogram("input_len", start=0, stop=run.history.up_to(run.until))
    long = prompts.percentile(100 * KEPT_SHARE) / prompts.percentile(50)
    return base * long > run.ttft_objective
