"""Which load a run kept: the evidence that the engine kept up, and for a rate that it sustains at least.

A rate counts as sustained if a stage has a steady window in which the requests kept all objectives and hardly any
waited, with enough requests for their number and their lengths to be those of the workload.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.analysis.diagnosis.capacity import BURSTY, KEPT_SHARE, largest_variability
from servetop.analysis.diagnosis.evidence import knows_every_replica
from servetop.analysis.diagnosis.overload import OVERLOAD
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.signals import awaiting_first_token
from servetop.analysis.diagnosis.trailing import ticks_of, trailing_all, trailing_min, trailing_sum
from servetop.analysis.engine_gauges import KV_FULL
from servetop.analysis.goodput import goodput_bounds
from servetop.analysis.trust.steady_state import SteadyWindow, steady_window
from servetop.core.arrays import BoolArray
from servetop.core.events import StageChange
from servetop.core.histogram import bucket_values

MIN_SECONDS = 20.0
"""Minimum steady window from which a rate counts as sustained."""
CLEAR_SHARE = 0.98
"""Minimum fraction of its requests within the objectives: with less the capacity may be near."""
CLEARER_SHARE = 0.99
"""The same where the queue, which would show that it is near, is not exported."""
_MIN_DUE = 20
"""Minimum requests that were due in a period whose rate counts."""
_NEAR = 0.9
"""Fraction of an objective from which a 95th percentile is near it."""
_WAITING_SHARE = 0.05
"""Maximum fraction of the window in which requests wait."""
UNCERTAIN = 0.12
"""Maximum standard error of the offered work, relative: random arrivals and lengths make one sample a light load."""
_NEARLY_CERTAIN = 0.05
"""The same if a request missed the objectives: the capacity may be near, and more work than the sample's above it."""
_MOMENT = 10.0
"""Seconds of each part of the window in which the objectives must be kept."""
_STAGES = 6
_DRAINED = 1.5
"""Requests in flight at the end of the load that an engine in balance has, as a multiple of rate times E2EL."""
_CHANCE = 3.0
"""Standard deviations by which random arrivals may exceed that."""
_OFFERED = 0.9
"""Least rate that was kept, relative to the highest of the run, which shows that an engine keeps up with bursts."""
_UNSERVED = 0.01
"""Fraction of cancelled requests from which an engine did not serve the load."""


def kept_rate(run: RunRecord, *, at: float) -> float | None:
    """Return the highest rate that the run shows to be sustained with the batch size of a time, or None.

    In requests/s. None for a search, whose answer is the rate within its own objectives.
    """
    if run.header.config.search is not None:
        return None
    open_loops = [stage for stage in run.loads_as_at(at) if math.isfinite(stage.request_rate or math.inf)]
    stages = sorted(open_loops, key=lambda stage: -(stage.request_rate or 0.0))[:_STAGES]
    return next((rate for rate in (_kept_in(run, stage) for stage in stages) if rate is not None), None)


def served_rate(run: RunRecord, *, at: float) -> float:
    """Return the highest constant rate of MIN_SECONDS whose requests were served within the objectives; 0 if none.

    With the batch size of a time, in requests/s. It need not be sustainable: an overload may show later. Fewer than
    _MIN_DUE requests may have come slowly by chance.
    """
    ticks, history = ticks_of(MIN_SECONDS), run.history
    target = history.column("request_rate")
    if target.size < ticks:
        return 0.0
    constant = trailing_min(target, ticks) == -trailing_min(-target, ticks)
    done, due, good, judged = (
        trailing_sum(history.column(each), ticks) for each in ("ok", "due", "good_due", "judged")
    )
    kept = (judged == 0) | (good >= 0.95 * judged)
    calm = trailing_sum(_overloaded(run), ticks) == 0
    rates = np.minimum(np.where(np.isfinite(target), target, 0.0), np.minimum(done, due) / MIN_SECONDS)
    served = constant & kept & calm & (due >= _MIN_DUE) & trailing_all(_within(run, run.loads_as_at(at)), ticks)
    return float(np.where(served, rates, 0.0).max(initial=0.0))


def kept_up(run: RunRecord) -> bool:
    """Whether the engine completed the load as it came: a steady window, or few requests in flight at its end."""
    if unserved_share(run) >= _UNSERVED:
        return False
    loads = list(run.loads)
    if not loads or any(math.isinf(each.request_rate or 0.0) for each in loads):
        return True
    longest = max(loads, key=lambda stage: _length(run, stage))
    return _window(run, longest).start is not None or _is_balanced(run)


def proves_headroom(run: RunRecord, kept: float | None, *, since: float) -> bool:
    """Whether a load that the engine kept up with, from a time on, shows that it keeps up with its rate.

    Requests that missed the objectives may have been in a queue that is not seen. Bursty arrivals may be fewer than the
    rate for long: then only a rate that was kept, as `kept_rate` finds it, shows that.
    """
    if hidden_misses(run, since):
        return False
    if largest_variability(run.header.config) <= BURSTY:
        return True
    highest = max((stage.request_rate or 0.0 for stage in run.loads), default=0.0)
    return math.isinf(highest) or (kept is not None and kept >= _OFFERED * highest)


def hidden_misses(run: RunRecord, since: float) -> float:
    """Return the fraction of the requests that missed the objectives from a time on, if the queue is not seen.

    0 if it is, or if hardly any did.
    """
    first, stop = run.history.first_from(since), len(run.history)
    kept = share_kept(run, first, stop)
    return 1 - kept if kept < CLEARER_SHARE and _hides_queue(run, first, stop) else 0.0


def given_up(run: RunRecord, since: float) -> int:
    """Return how many requests were cancelled from a time on because the run ended; 0 if its workload cancels any."""
    return 0 if run.header.config.workload.cancel_fraction else run.count("cancelled", since)


def unserved_share(run: RunRecord) -> float:
    """Return the fraction of an open loop's requests that were given up; 0 of a closed loop."""
    if any(math.isinf(each.request_rate or 0.0) for each in run.loads):
        return 0.0
    cancelled, sent = given_up(run, run.load_since), run.count("sent", run.load_since)
    return cancelled / sent if sent else 0.0


def _is_balanced(run: RunRecord) -> bool:
    """Whether no more are in flight at the end of the load than its rate and the E2EL of its first half explain."""
    loaded = np.flatnonzero(np.isfinite(run.history.column("request_rate")))
    if not loaded.size:
        return True
    begin, last = int(loaded[0]), int(loaded[-1])
    first = max(begin, last - ticks_of(10))
    rate = float(run.history.column("due", start=first, stop=last).mean()) * ticks_of(1) if last > first else 0.0
    early = run.history.histogram("e2el", start=begin, stop=(begin + last) // 2 + 1)
    usual = rate * early.mean if early.buckets.size else 0.0
    present = run.history.value("in_flight", last) + run.history.value("queued", last)
    return bool(present <= max(_DRAINED * usual + _CHANCE * math.sqrt(usual), 5.0))


def _kept_in(run: RunRecord, stage: StageChange) -> float | None:
    window = _window(run, stage)
    if window.start is None or window.end is None or window.end - window.start < MIN_SECONDS:
        return None
    first, stop = run.history.first_from(window.start), run.history.up_to(window.end)
    seconds = window.end - window.start
    due, done, queued = (run.history.column(each, start=first, stop=stop).sum() for each in ("due", "ok", "queued"))
    clear = CLEARER_SHARE if _hides_queue(run, first, stop) else CLEAR_SHARE
    if due < _MIN_DUE or queued or not share_kept(run, first, stop) >= clear:
        return None
    begin, end = _period(run, stage)  # more requests than in the window tell how much their lengths vary
    error = work_error(run, run.history.first_from(begin), run.history.up_to(end), due)
    most = UNCERTAIN if share_kept(run, first, run.history.up_to(end)) == 1 else _NEARLY_CERTAIN
    if error > most or _waiting_share(run, first, stop) > _WAITING_SHARE:
        return None
    if (
        _barely_kept(run, first, stop)
        or _overloaded(run)[first:stop].any()
        or _was_full(run, first, stop)
        or _missed_for_moments(run, first, stop)
    ):
        return None
    return float(min(stage.request_rate or 0.0, due / seconds, done / seconds))


def _barely_kept(run: RunRecord, first: int, stop: int) -> bool:
    """Whether a time that grows with the batch is near its objective at its 95th percentile.

    All requests feel a larger batch, so that a few more of them at once would miss the objective together.
    """
    limits = {metric: limit for metric, limit in run.header.config.goodput.items() if metric != "ttft"}
    found = {metric: run.history.histogram(metric, start=first, stop=stop) for metric in limits}
    return any(found[metric].percentile(100 * KEPT_SHARE) > _NEAR * limit for metric, limit in limits.items())


def _was_full(run: RunRecord, first: int, stop: int) -> bool:
    """Whether requests waited in any tick while the KV blocks were full: the load is near what they hold."""
    waiting = run.history.column("waiting", start=first, stop=stop)
    return bool(((run.kv_usage(first, stop) >= KV_FULL) & (waiting > 0)).any())


def _missed_for_moments(run: RunRecord, first: int, stop: int) -> bool:
    """Whether the objectives were missed in any `_MOMENT`: an engine near its capacity keeps them for a while only."""
    ticks = ticks_of(_MOMENT)
    edges = range(first, max(stop - ticks, first) + 1, ticks)
    return any(share_kept(run, each, each + ticks) < KEPT_SHARE for each in edges)


def share_kept(run: RunRecord, first: int, stop: int) -> float:
    """Return the fraction of the requests that ended in ticks `first` to `stop` within all objectives; 1 without any.

    Where it was not counted, the least that the distributions of the latencies allow.
    """
    objectives = run.header.config.goodput
    if not objectives:
        return 1.0
    good, judged = (run.history.column(each, start=first, stop=stop) for each in ("good_due", "judged"))
    total = float(np.nansum(judged))
    if total:
        return float(np.nansum(good)) / total
    names = {metric: "ttft_due" if metric == "ttft" else metric for metric in ("ttft", *objectives)}
    found = {metric: run.history.histogram(name, start=first, stop=stop) for metric, name in names.items()}
    least, _ = goodput_bounds(found, objectives)
    return 1.0 if math.isnan(least) else least


def work_error(run: RunRecord, first: int, stop: int, due: float) -> float:
    """Return the standard error of the work of `due` requests, relative to that of the workload.

    How much their lengths vary is measured in ticks `first` to `stop`.
    """
    lengths = run.history.histogram("output_len", start=first, stop=stop)
    spread = 0.0
    if lengths.buckets.size:
        middles = bucket_values(lengths.buckets)
        spread = float(np.average((middles / lengths.mean - 1) ** 2, weights=lengths.counts))
    return math.sqrt((largest_variability(run.header.config) + spread) / due)


def _waiting_share(run: RunRecord, first: int, stop: int) -> float:
    waiting = run.history.column("waiting", start=first, stop=stop)
    if _hides_queue(run, first, stop):
        rate = run.history.column("first_tokens", start=first, stop=stop).mean()
        quick = run.history.histogram("ttft", start=first, stop=stop).percentile(25)
        waiting = awaiting_first_token(run.history, first, stop) - 2 * ticks_of(1) * rate * quick
    return float((waiting > SHORT_QUEUE).mean())


def _hides_queue(run: RunRecord, first: int, stop: int) -> bool:
    """Whether the queue of an engine, or of a replica, is not known in ticks `first` to `stop`."""
    return bool(np.isnan(run.history.column("waiting", start=first, stop=stop)).all()) or not knows_every_replica(run)


def _overloaded(run: RunRecord) -> BoolArray:
    """Return whether an overload lasts in each tick of a run."""
    found = np.zeros(len(run.history), dtype=np.bool_)
    for episode in run.episodes:
        if episode.kind in OVERLOAD:
            end = run.until if episode.end is None else episode.end
            found[run.history.first_from(episode.begin) : run.history.up_to(end)] = True
    return found


def _within(run: RunRecord, stages: Sequence[StageChange]) -> BoolArray:
    """Return whether each tick of a run is in one of these stages."""
    found = np.zeros(len(run.history), dtype=np.bool_)
    for start, end in (_period(run, stage) for stage in stages):
        found[run.history.first_from(start) : run.history.up_to(end)] = True
    return found


def _period(run: RunRecord, stage: StageChange) -> tuple[float, float]:
    later = [each.at for each in run.stages if each.at > stage.at]
    return stage.at, min(later, default=run.until)


def _length(run: RunRecord, stage: StageChange) -> float:
    start, end = _period(run, stage)
    return end - start


def _window(run: RunRecord, stage: StageChange) -> SteadyWindow:
    start, end = _period(run, stage)
    return steady_window(run.history.stage_columns(run.history.first_from(start), run.history.up_to(end)))
