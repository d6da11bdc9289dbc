"""The verdict of one time of a run: what limits throughput, with evidence and advice.

The episodes that last decide, so that the verdict stays while its cause lasts; without one, the state of the load does.
"""

from __future__ import annotations

import math
from dataclasses import replace

from servetop.analysis.diagnosis import live_clauses as clauses
from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.diagnosis.clauses import Phrase, supported
from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.live_clauses import diagnosis, observed_now
from servetop.analysis.diagnosis.moment import GROWTH_SECONDS, Moment
from servetop.analysis.diagnosis.overload import QUEUES, Limit
from servetop.analysis.diagnosis.overload_now import (
    batch_bound,
    done,
    done_text,
    in_flight,
    in_flight_text,
    is_closed,
    kv_bound,
    long_prompts,
    percent,
    queue_growing,
    waiting,
)
from servetop.analysis.diagnosis.queue_detectors import QUEUE_SECONDS, SHORT_QUEUE
from servetop.analysis.diagnosis.run_verdict import CLIENT_TOO
from servetop.analysis.diagnosis.stalls import STALL_SECONDS
from servetop.analysis.diagnosis.watched_verdict import watched_verdict
from servetop.analysis.engine_gauges import KV_HIGH, STALE_AFTER
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.text.counted import counted
from servetop.core.text.formats import whole_percent

KEEPS_UP = 0.95
"""Minimum completed / offered rate at which the engine keeps up; requests in flight account for the rest."""
THROTTLED_TOO = "the GPU's clocks are throttled"
_CAUSED_BY_CLOCKS = {
    Bottleneck.STALL,
    Bottleneck.KV,
    Bottleneck.BATCH,
    Bottleneck.QUEUE,
    Bottleneck.OVERLOADED,
    Bottleneck.PATH_OVERLOADED,
    Bottleneck.MISSED,
}
_BY_CHANCE = 2.0
"""Standard deviations by which fewer requests complete than arrive by chance."""
WARM_REQUESTS = 30
"""Requests that must end before the first verdict on the engine, unless WARM_SECONDS have passed and one ended."""
WARM_SECONDS = 10.0
_GROWS = 3.0
"""Standard deviations of random arrivals by which the requests in flight must have grown."""
_NEARLY_FULL = "hold the load: the KV cache is nearly full"
_PREFILL_SECONDS = 10.0
"""Seconds without a token that the prefill of long prompts, or of many, explains."""


def verdict_now(moment: Moment) -> Diagnosis:
    """Return the verdict of one time: the first rule that applies, with its evidence, decides."""
    if moment.ended_by:
        return Diagnosis(bottleneck=Bottleneck.FAILED, evidence=(moment.ended_by,), advice=_see_log(moment))
    if moment.watched:
        return _beside_throttling(moment, watched_verdict(moment))
    for rule in (
        _no_load,
        _failing,
        _stalled,
        _other_traffic,
        _client,
        _overloaded,
        _concurrency,
        _warming_up,
        _idle,
        _settling,
        _missed,
        _headroom,
    ):
        found = rule(moment)
        if found is not None:
            return _beside_throttling(moment, found)
    return _unclear(moment)


def _beside_throttling(moment: Moment, found: Diagnosis) -> Diagnosis:
    """Name throttled clocks beside what they may cause; a pause is then no reason to look at the log."""
    if found.bottleneck not in _CAUSED_BY_CLOCKS or moment.episode(EpisodeKind.THROTTLED) is None:
        return found
    advice = "" if found.bottleneck is Bottleneck.STALL else found.advice
    known = [each.text for each in supported([Phrase(clauses.THROTTLED, THROTTLED_TOO)], observed_now(moment))]
    return replace(found, evidence=(*found.evidence, *known), advice=advice)


def _no_load(moment: Moment) -> Diagnosis | None:
    """Return the states without a load: before it, between stages, during a restart, while the last requests drain."""
    load, totals = moment.stats.load, moment.stats.totals
    if moment.stage is None:
        return _state(Bottleneck.STARTING, "the engine is loading")
    if load.paused:
        return _state(Bottleneck.PAUSED, in_flight_text(load.in_flight), advice="press p to resume the load")
    if load.request_rate is not None:
        return None
    if load.in_flight or load.queued:
        return _state(Bottleneck.DRAINING, in_flight_text(load.in_flight), "nothing new is sent")
    if moment.restarting or (totals.sent and moment.facts is not None and moment.facts.managed and not moment.fresh):
        since = "" if math.isnan(moment.sample_age) or moment.fresh else f"no metrics for {moment.sample_age:.0f} s"
        return _state(Bottleneck.RESTARTING, "the engine restarts", since)
    return _state(Bottleneck.IDLE)


def _state(state: Bottleneck, *evidence: str, advice: str = "") -> Diagnosis:
    """Return a state that the run itself knows."""
    return Diagnosis(bottleneck=state, evidence=tuple(filter(None, evidence)), advice=advice)


def _failing(moment: Moment) -> Diagnosis | None:
    if moment.episode(EpisodeKind.FAILING) is None:
        return None
    rates = moment.stats.rates
    ended = rates.failed + rates.completed
    share = (
        f"{rates.failed / ended:.0%} of requests"
        if ended > 0
        else f"{counted(moment.stats.totals.failed, 'request')} failed"
    )
    evidence = [Phrase(clauses.FAILED_SHARE, share), Phrase(clauses.FAILED_SHARE, moment.failure)]
    return diagnosis(moment, Bottleneck.FAILING, evidence, [Phrase(clauses.HINT, "press s to stop the run")])


def _stalled(moment: Moment) -> Diagnosis | None:
    episode = moment.episode(EpisodeKind.STALL)
    if episode is None:
        return None
    seconds = moment.stats.at - episode.begin
    if seconds <= STALL_SECONDS or (_prefills(moment, episode) and seconds < _PREFILL_SECONDS):
        return None
    evidence = [Phrase(clauses.NO_TOKEN, f"no token for {seconds:.0f} s"), in_flight(moment)]
    return diagnosis(moment, Bottleneck.STALL, evidence, [Phrase(clauses.HINT, _see_log(moment))])


def _prefills(moment: Moment, stall: Episode) -> bool:
    """Whether requests waited for the prefill of others before no token arrived any more."""
    queue = moment.episode(*QUEUES)
    waited = moment.limit in (Limit.RATE, Limit.UNKNOWN) and queue is not None and queue.begin < stall.begin
    return waited or moment.limit is Limit.LONG_PROMPTS


def _other_traffic(moment: Moment) -> Diagnosis | None:
    trust = moment.stats.trust
    if moment.facts is None or moment.facts.managed or not trust.serves_others:
        return None
    if moment.facts.page_age and not trust.in_flight * (1 + trust.littles_law_error) > moment.most_in_flight:
        return None  # an old page has the requests of that time
    evidence = [Phrase(clauses.OTHERS, trust.other_requests)]
    return diagnosis(moment, Bottleneck.OTHERS, evidence, [Phrase(clauses.HINT, trust.advice)])


def _client(moment: Moment) -> Diagnosis | None:
    trust = moment.stats.trust
    if not _client_is_late(moment) or (moment.limit is not None and not trust.lateness_is_felt):
        return None
    bound = trust.verdict is TrustVerdict.CLIENT_BOUND
    reasons = trust.reasons if bound else ("requests were sent late during the last seconds",)
    load = "concurrency" if trust.closed else "rate"
    advice = f"the figures describe the client: lower the {load}, or give the client more CPU"
    evidence = [Phrase(clauses.CLIENT_LATE, each) for each in reasons]
    return diagnosis(moment, Bottleneck.CLIENT, evidence, [Phrase(clauses.HINT, advice)])


def _client_is_late(moment: Moment) -> bool:
    bound = moment.stats.trust.verdict is TrustVerdict.CLIENT_BOUND
    return bound or moment.episode(EpisodeKind.CLIENT) is not None


def _overloaded(moment: Moment) -> Diagnosis | None:
    if moment.limit is None or (moment.limit in (Limit.RATE, Limit.UNKNOWN) and _waits_at_client(moment)):
        return None
    if moment.limit_is_elsewhere:
        moment = replace(moment, limit=Limit.UNKNOWN)
    by_limit = {Limit.KV: kv_bound, Limit.BATCH: batch_bound, Limit.LONG_PROMPTS: long_prompts}
    found = by_limit.get(moment.limit or Limit.UNKNOWN, queue_growing)(moment) or queue_growing(moment)
    if found is None or not _client_is_late(moment):
        return found
    return replace(found, evidence=(*found.evidence, CLIENT_TOO))


def _waits_at_client(moment: Moment) -> bool:
    """Whether nothing waits at the engine, because the limit of a closed or open loop keeps requests at the client."""
    return bool(moment.stats.load.queued or is_closed(moment)) and moment.waiting <= SHORT_QUEUE


def _concurrency(moment: Moment) -> Diagnosis | None:
    load = moment.stats.load
    if load.max_concurrency is None or not load.queued or moment.waiting > SHORT_QUEUE:
        return None
    queued = f"{counted(load.queued, 'request')} queued at the client, limit {load.max_concurrency} in flight"
    advice = Phrase(clauses.RAISE_LIMIT, clauses.RAISE_LIMIT.example)
    return diagnosis(moment, Bottleneck.CONCURRENCY, [Phrase(clauses.QUEUED, queued)], [advice])


def _idle(moment: Moment) -> Diagnosis | None:
    idle = not moment.stats.rates.offered > 0 and moment.stats.load.in_flight == 0
    return _state(Bottleneck.IDLE) if idle else None


def _warming_up(moment: Moment) -> Diagnosis | None:
    ended = moment.ended_requests
    if moment.stage is not None and moment.stage.warmup:
        return _state(Bottleneck.WARMING_UP, "requests of the warm-up are not counted")
    restarted = moment.stats.at - moment.restarted_at
    if restarted < WARM_SECONDS:
        return _state(Bottleneck.WARMING_UP, f"the engine restarted {restarted:.0f} s ago")
    if ended >= WARM_REQUESTS or (ended and not moment.stats.at - moment.load_since < WARM_SECONDS):
        return None
    return _state(Bottleneck.WARMING_UP, f"{ended} of the {WARM_REQUESTS} requests that a verdict needs")


def _settling(moment: Moment) -> Diagnosis | None:
    """Right after a higher load nothing waits yet, but more requests arrive than complete."""
    count = moment.stats.load.in_flight
    if not moment.growth > _GROWS * math.sqrt(2 * count):
        return None
    grows = f"{in_flight_text(count)}, up by {moment.growth:.0f} within {GROWTH_SECONDS:.0f} s"
    advice = Phrase(clauses.HINT, "hold the load until as many requests complete as arrive")
    return diagnosis(moment, Bottleneck.SETTLING, [Phrase(clauses.GROWS, grows), _memory(moment)], [advice])


def _memory(moment: Moment) -> Phrase:
    fullest = "up to " if moment.replicas else ""
    return Phrase(clauses.KV_PEAK, "" if math.isnan(moment.kv) else f"KV {fullest}{percent(moment.kv)}")


def _missed(moment: Moment) -> Diagnosis | None:
    """Requests end without a visible limit, but many of them miss an objective."""
    kept = moment.stats.attainment.window
    if not kept < KEPT_SHARE or not moment.stats.rates.completed > 0:
        return None
    evidence = [Phrase(clauses.KEPT, f"{whole_percent(kept)} of the requests keep the objectives"), done(moment)]
    lower = "concurrency" if is_closed(moment) else "rate"
    advice = Phrase(clauses.HINT, f"hold this stage until it is steady, or lower the {lower}")
    return diagnosis(moment, Bottleneck.MISSED, evidence, [advice])


def _headroom(moment: Moment) -> Diagnosis | None:
    rates = moment.stats.rates
    keeps_up = rates.completed >= KEEPS_UP * rates.offered
    short = max(SHORT_QUEUE + 2, QUEUE_SECONDS * rates.completed) if keeps_up else SHORT_QUEUE
    chance = _BY_CHANCE * math.sqrt((rates.offered + rates.completed) / moment.stats.window)
    behind = rates.offered - rates.completed > (0.0 if math.isnan(moment.waiting) else chance)
    unseen = math.isnan(moment.waiting) and (is_closed(moment) or _drains(moment))
    if moment.waiting > short or unseen or moment.overloaded_before or (behind and not keeps_up):
        return None
    if moment.kv >= KV_HIGH:
        return None
    limit = "raise the concurrency limit" if moment.stats.load.max_concurrency else "send more requests at once"
    advice = limit if is_closed(moment) else "raise the rate"
    evidence = [
        Phrase(clauses.KEEPS_UP, "the engine keeps up"),
        done(moment) if keeps_up else Phrase(clauses.WAITING, "nothing waits"),
        _memory(moment),
    ]
    return diagnosis(moment, Bottleneck.HEADROOM, evidence, [Phrase(clauses.HINT, advice)])


def _drains(moment: Moment) -> bool:
    """Whether more requests completed than arrived, by more than a short queue: others waited before."""
    rates = moment.stats.rates
    more = rates.completed - rates.offered
    return more > (1 - KEEPS_UP) * rates.completed and more * moment.stats.window > SHORT_QUEUE


def _unclear(moment: Moment) -> Diagnosis:
    if moment.sample_age > STALE_AFTER:
        evidence = f"the engine's newest sample is {moment.sample_age:.1f} s old"
    elif math.isnan(moment.waiting):
        evidence = f"the engine does not export its queue, {done_text(moment)}"
    else:
        evidence = f"{waiting(moment).text}, {done_text(moment)}"
    if moment.kv >= KV_HIGH:
        return _state(Bottleneck.UNCLEAR, evidence, _memory(moment).text, advice=_NEARLY_FULL)
    return _state(Bottleneck.UNCLEAR, evidence, advice="hold this stage until it is steady")


def _see_log(moment: Moment) -> str:
    """Return where to look for the reason: servetop has no log of a server that it attached to."""
    attached = moment.facts is not None and not moment.facts.managed
    return "look at the server's log" if attached else "look at the engine's log (5)"
