"""What else than the engine's limits keeps requests waiting: the client's own limit, the network, a cold start."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.capacity import BURSTY, KEPT_SHARE, largest_variability
from servetop.analysis.diagnosis.evidence import knows_every_replica
from servetop.analysis.diagnosis.kept_load import CLEAR_SHARE, share_kept
from servetop.analysis.diagnosis.overload import Overload
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.trailing import ticks_of
from servetop.analysis.diagnosis.wording import seconds
from servetop.analysis.trust.trust import Trust
from servetop.analysis.trust.trust_inputs import limit_in_force

HELD_SECONDS = 5.0
"""Seconds with requests queued at the client from which its concurrency limit is what limits a run."""
HELD_SHARE = 0.1
"""The same as a fraction of the load, if that is shorter."""
ELSEWHERE = -0.6
"""Requests in the engine / in flight at the client - 1, below which most requests are not in the engine."""
_MIN_IN_FLIGHT = 8.0
_UNSEEN_SHARE = 0.25
"""Largest fraction of a load without a metrics page for which the pages tell where its requests were."""
COLD_SECONDS = 10.0
"""Seconds after the start of the load within which a cold start begins."""
_COLD_STEPS = (5.0, 10.0, 20.0, 40.0)
"""Lengths of a cold start without an overload that are tried, seconds."""
_FIRST = 5
"""First tokens at the start of a load by whose TTFT the engine was slower then."""
_SLOWER = 1.5
"""Least ratio of their median to that of the same load later."""
_FILLED = 0.1
"""Least rise of the hit rate of a prefix cache that fills."""
_WARM_SECONDS = 20.0
"""Minimum seconds of the same load that the engine serves after its cold start."""


def held_back_since(run: RunRecord) -> float | None:
    """Return from when on an open loop's requests were queued at the client by its concurrency limit; None if not."""
    queued, open_loop = run.history.column("queued"), np.isfinite(run.history.column("request_rate"))
    held = (queued > 0) & open_loop
    loaded = run.until - run.load_since
    if held.sum() < min(ticks_of(HELD_SECONDS), HELD_SHARE * ticks_of(max(loaded, 0.0))) or not held.any():
        return None
    several = held & (queued > SHORT_QUEUE)
    return run.history.ticks[int(np.argmax(several if several.any() else held))].start


def held_between(run: RunRecord, trust: Trust) -> str | None:
    """Return in words what shows that requests, or first tokens, wait between client and engine; None if nothing does.

    The engine's own TTFT keeps the objective and the client's misses it because of the difference; or most requests in
    flight are not in the engine. Neither is known if no metrics page came for much of the load, and neither limits a
    run that kept its objectives.
    """
    since = run.history.first_from(run.load_since)
    if run.header.config.goodput and share_kept(run, since, len(run.history)) >= KEPT_SHARE:
        return None
    if run.longest_page_gap > _UNSEEN_SHARE * (run.until - run.load_since):
        return None
    engine, client = trust.times.ttft.engine, trust.times.ttft.client
    waits = knows_every_replica(run) and trust.littles_law_error < ELSEWHERE and trust.in_flight >= _MIN_IN_FLIGHT
    if waits and not _misses_by_engine(run, trust, since):
        held = trust.in_flight * (1 + trust.littles_law_error)
        return f"of {trust.in_flight:.0f} requests in flight the engine holds {held:.0f}"
    objective = run.ttft_objective
    if not engine <= 0.5 * objective or not client > 0.8 * objective or not client - engine > 0.5 * objective:
        return None
    return f"mean TTFT is {seconds(client)}, the engine's own {seconds(engine)}"


def _misses_by_engine(run: RunRecord, trust: Trust, since: int) -> bool:
    """Whether the objectives that are missed are those on tokens after the first, which the engine itself misses.

    What holds a request before its first token, or a stream as a whole, does not change the times between tokens.
    """
    limits, tpot = run.header.config.goodput, trust.times.tpot
    if not limits or "e2el" in limits or run.share_in_time_of(since, len(run.history)) < KEPT_SHARE:
        return False
    return not tpot.engine <= 0.5 * tpot.client


def began_cold(run: RunRecord, main: Overload) -> bool:
    """Whether the run began with an overload that ended, long before the same load did.

    If the engine was slower then, as long before it as the overload and what was before it lasted.
    """
    same = _same_load(run)
    if main.end is None or same is None or main.begin > run.load_since + COLD_SECONDS:
        return False
    begin, first, stop = map(run.history.first_from, (run.load_since, main.end, same.until))
    times = 1 if _was_slower(run, begin, first, stop) else 3
    return same.until - main.end >= max(_WARM_SECONDS, times * (main.end - run.load_since))


def cold_start_end(run: RunRecord, main: Overload | None) -> float | None:
    """Return when a cold start ended; None without one.

    The run began with the overload `main`, or missed its objectives at first, and the engine then clearly served the
    same load within the objectives, for longer. Of bursty arrivals the first misses may be those of a burst; and a
    load near the capacity misses its objectives at times, at its start as later, so the engine must have been slower.
    """
    if main is None and largest_variability(run.header.config) > BURSTY:
        return None
    if main is not None and (main.end is None or main.begin > run.load_since + COLD_SECONDS):
        return None
    earliest = run.load_since if main is None or main.end is None else main.end
    begin = run.history.first_from(run.load_since)
    steps = (run.load_since + seconds for seconds in _COLD_STEPS)
    last = [each.until for each in [_same_load(run)] if each is not None]
    for end in [*([] if main is None else [earliest]), *(step for step in steps if step > earliest)]:
        if not last or last[0] - end < max(_WARM_SECONDS, end - run.load_since):
            continue
        first, stop = run.history.first_from(end), run.history.up_to(last[0])
        was_cold = share_kept(run, begin, first) < KEPT_SHARE or (main is not None and not run.header.config.goodput)
        if was_cold and share_kept(run, first, stop) >= CLEAR_SHARE and _was_slower(run, begin, first, stop):
            return end
    return None


def cache_filled(run: RunRecord, first: int, stop: int) -> tuple[float, float] | None:
    """Return the hit rates of the prefix cache at the start of a load and after a cold start; None if none rose.

    The load began with tick `first`, and the cold start ended with tick `stop`.
    """
    before, after = _hit_rate(run, 0, first + ticks_of(5)), _hit_rate(run, stop, len(run.history))
    return (before, after) if after > before + _FILLED else None


def _hit_rate(run: RunRecord, first: int, stop: int) -> float:
    names = ("prefix_cache_hits", "prefix_cache_queries")
    hits, queries = (float(np.nansum(run.history.column(each, start=first, stop=max(first, stop)))) for each in names)
    return hits / queries if queries else math.nan


def _was_slower(run: RunRecord, begin: int, first: int, stop: int) -> bool:
    """Whether the engine was slower in ticks `begin` to `first` than from then on, up to `stop`.

    Its prefix cache filled, or the very first requests, before which no queue can have grown, were slow already. The
    requests that a closed loop begins with are sent at once, and wait for each other.
    """
    if np.isinf(run.history.value("request_rate", begin)) or cache_filled(run, begin, first) is not None:
        return True
    started = np.cumsum(run.history.column("first_tokens", start=begin, stop=first))
    until = begin + int(np.searchsorted(started, _FIRST)) + 1
    early, later = (
        run.history.histogram("ttft", start=start, stop=end).percentile(50)
        for start, end in ((begin, min(until, first)), (first, stop))
    )
    return bool(early >= _SLOWER * later)


@dataclass(frozen=True, slots=True)
class _SameLoad:
    """The period from the start of the load in which its target does not change."""

    until: float


def _same_load(run: RunRecord) -> _SameLoad | None:
    first = run.history.first_from(run.load_since)
    rates, limits = (run.history.column(each, start=first) for each in ("request_rate", "max_concurrency"))
    if not rates.size or np.isnan(rates[0]):
        return None
    same = (rates == rates[0]) & ((limits == limits[0]) | np.isnan(limits))
    stop = first + (int(np.argmin(same)) if not same.all() else same.size)
    return _SameLoad(run.history.ticks[stop - 1].end)


def longest_client_queue(run: RunRecord) -> tuple[int, int | None]:
    """Return the most requests queued at the client, and the limit that queued them; None if it varied."""
    queued, limits = run.history.column("queued"), run.history.column("max_concurrency")
    return int(np.nanmax(queued, initial=0.0)), limit_in_force(limits, queued)
