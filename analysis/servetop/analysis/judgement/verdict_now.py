"""The verdict of one time of a run: what limits throughput, with evidence and advice.

The episodes that last decide, so that the verdict stays while its cause lasts; without one, the state of the load does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.engine_gauges import KV_HIGH, KV_ROOMY, STALE_AFTER, kv_usage
from servetop.analysis.judgement.detectors import SHORT_QUEUE
from servetop.analysis.judgement.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.judgement.episode import Episode, EpisodeKind
from servetop.analysis.judgement.overload import Limit
from servetop.analysis.live_stats import LiveStats
from servetop.analysis.verdicts.trust import TrustVerdict
from servetop.core.events import StageChange
from servetop.core.interfaces.run_source import EngineFacts

KEEPS_UP = 0.95
"""Minimum completed / offered rate at which the engine keeps up; requests in flight account for the rest."""
WARM_REQUESTS = 30
"""Requests that must end before the first verdict on the engine, unless WARM_SECONDS have passed and one ended."""
WARM_SECONDS = 10.0
_PREFILL_SECONDS = 10.0
"""Seconds without a token that the prefill of long prompts explains."""
_SEE_LOG = "look at the engine's log (5)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Everything the verdict of one time depends on; nothing in it is later."""

    stats: LiveStats
    facts: EngineFacts | None = None
    stage: StageChange | None = None
    """The stage in force; None before the first one."""
    load_since: float = math.nan
    """Start of the load, seconds; NaN before it."""
    restarting: bool = False
    """Whether the run restarts its engine: the requests are drained, and the next stage has not started."""
    restarted_at: float = math.nan
    """Start of the load after the last restart of the engine, seconds; NaN if the run did not restart it."""
    episodes: tuple[Episode, ...] = ()
    """Those that last."""
    limit: Limit | None = None
    """The limit of the overload that lasts; None without one."""
    failure: str = ""
    """Why requests fail; empty if unknown."""
    ended_by: str = ""
    """The error that ends the run, such as an engine that was killed; empty without one."""

    def episode(self, *kinds: EpisodeKind) -> Episode | None:
        """The first episode of the first of these kinds that lasts; None if there is none."""
        return next((each for kind in kinds for each in self.episodes if each.kind is kind), None)

    @property
    def sample_age(self) -> float:
        """Seconds since the newest engine sample; NaN without one."""
        sample = self.stats.engine
        return math.nan if sample is None else self.stats.at - sample.scrape_end

    @property
    def fresh(self) -> bool:
        """Whether the newest engine sample describes the present."""
        return self.sample_age <= STALE_AFTER

    @property
    def waiting(self) -> float:
        """Requests waiting at the engine; NaN if unknown."""
        sample = self.stats.engine
        return float(sample.waiting) if sample is not None and self.fresh and sample.waiting is not None else math.nan

    @property
    def kv(self) -> float:
        """KV usage, 0..1; NaN if unknown."""
        return kv_usage(self.stats.engine) if self.fresh else math.nan

    @property
    def ended_requests(self) -> int:
        """Requests that succeeded or failed since the start of the run."""
        return self.stats.totals.completed + self.stats.totals.failed


def verdict_now(moment: Moment) -> Diagnosis:
    """Return the verdict of one time: the first rule that applies decides."""
    if moment.ended_by:
        return Diagnosis(bottleneck=Bottleneck.FAILED, evidence=(moment.ended_by,), advice=_SEE_LOG)
    for rule in (_no_load, _failing, _stalled, _client, _overloaded, _concurrency, _warming_up, _idle, _headroom):
        diagnosis = rule(moment)
        if diagnosis is not None:
            return diagnosis
    return _unclear(moment)


def _no_load(moment: Moment) -> Diagnosis | None:
    """The states without a load: before it, between stages, during a restart, while the last requests drain."""
    load, totals = moment.stats.load, moment.stats.totals
    if moment.stage is None:
        return Diagnosis(bottleneck=Bottleneck.STARTING, evidence=("the engine is loading",))
    if load.paused:
        return Diagnosis(
            bottleneck=Bottleneck.PAUSED, evidence=(_in_flight(load.in_flight),), advice="press p to resume the load"
        )
    if load.request_rate is not None:
        return None
    if load.in_flight or load.queued:
        return Diagnosis(bottleneck=Bottleneck.DRAINING, evidence=(_in_flight(load.in_flight), "nothing new is sent"))
    if moment.restarting or (totals.sent and moment.facts is not None and moment.facts.managed and not moment.fresh):
        since = "" if math.isnan(moment.sample_age) or moment.fresh else f"no metrics for {moment.sample_age:.0f} s"
        return Diagnosis(bottleneck=Bottleneck.RESTARTING, evidence=tuple(filter(None, ("the engine restarts", since))))
    return Diagnosis(bottleneck=Bottleneck.IDLE)


def _failing(moment: Moment) -> Diagnosis | None:
    if moment.episode(EpisodeKind.FAILING) is None:
        return None
    rates = moment.stats.rates
    ended = rates.failed + rates.completed
    share = f"{rates.failed / ended:.0%} of requests" if ended > 0 else f"{moment.stats.totals.failed} requests failed"
    return Diagnosis(bottleneck=Bottleneck.FAILING, evidence=tuple(filter(None, (share, moment.failure))),
                     advice="press s to stop the run")  # fmt: skip


def _stalled(moment: Moment) -> Diagnosis | None:
    episode = moment.episode(EpisodeKind.STALL)
    if episode is None:
        return None
    seconds = moment.stats.at - episode.begin
    if moment.limit is Limit.LONG_PROMPTS and seconds < _PREFILL_SECONDS:
        return None
    silent = f"no token for {seconds:.0f} s"
    return Diagnosis(bottleneck=Bottleneck.STALL, evidence=(silent, _in_flight(moment.stats.load.in_flight)),
                     advice=_SEE_LOG)  # fmt: skip


def _client(moment: Moment) -> Diagnosis | None:
    trust = moment.stats.trust
    bound = trust.verdict is TrustVerdict.CLIENT_BOUND
    if not bound and moment.episode(EpisodeKind.CLIENT) is None:
        return None
    evidence = trust.reasons if bound else ("requests were sent late during the last seconds",)
    advice = "the figures describe the client: lower the rate, or give the client more CPU"
    return Diagnosis(bottleneck=Bottleneck.CLIENT, evidence=evidence, advice=advice)


def _overloaded(moment: Moment) -> Diagnosis | None:
    if moment.limit is None:
        return None
    return {Limit.KV: _kv, Limit.BATCH: _batch, Limit.RATE: _queue, Limit.LONG_PROMPTS: _long_prompts}[moment.limit](
        moment
    )


def _kv(moment: Moment) -> Diagnosis:
    rates = moment.stats.rates
    preempting = moment.episode(EpisodeKind.PREEMPTIONS)
    now = "full before, now " if moment.kv < KV_ROOMY else ""
    evidence = (
        "" if math.isnan(moment.kv) else f"{now}{_percent(moment.kv)} of blocks",
        f"{rates.preemptions:.1f} preemptions/s" if preempting and rates.preemptions > 0 else "",
        _waiting(moment),
    )
    return Diagnosis(
        bottleneck=Bottleneck.KV, evidence=tuple(filter(None, evidence)), advice=kv_advice(moment.episodes)
    )


def kv_advice(episodes: Sequence[Episode]) -> str:
    """Return what to change about a full KV cache, by the state when it was detected, so that it does not change."""
    preempting = any(each.kind is EpisodeKind.PREEMPTIONS for each in episodes)
    size = next((each for each in episodes if each.fits), None)
    if preempting and size is not None and not size.fits >= size.batch:
        return f"max_num_seqs ≈ {size.fits} or more KV memory"
    return "more KV memory, or shorter requests"


def _batch(moment: Moment) -> Diagnosis:
    sample, episode = moment.stats.engine, moment.episode(EpisodeKind.BATCH)
    running = sample.running if sample is not None and moment.fresh else None
    size = math.nan if episode is None else episode.batch
    roomy = moment.kv < KV_ROOMY
    memory = "" if math.isnan(moment.kv) else f"KV {'only ' if roomy else ''}{_percent(moment.kv)}"
    full = "" if running is None or math.isnan(size) else f"running {running:.0f} of {size:.0f}"
    advice = (
        "raise max_num_seqs" if roomy or not memory else "lower the rate: a larger batch would soon fill the KV blocks"
    )
    return Diagnosis(bottleneck=Bottleneck.BATCH, evidence=tuple(filter(None, (full, _waiting(moment), memory))),
                     advice=advice)  # fmt: skip


def _queue(moment: Moment) -> Diagnosis:
    rates, load = moment.stats.rates, moment.stats.load
    unknown = "" if not math.isnan(moment.waiting) else "cause unknown without the engine's queue"
    piled = f"{load.in_flight} in flight" if unknown else ""
    advice = f"lower the rate below {rates.completed:.1f}" if rates.completed > 0 else "lower the rate"
    evidence = tuple(filter(None, (_waiting(moment) or piled, _done(moment), unknown)))
    return Diagnosis(bottleneck=Bottleneck.QUEUE, evidence=evidence, advice=advice)


def _long_prompts(moment: Moment) -> Diagnosis:
    rates = moment.stats.rates
    prompts = "" if math.isnan(rates.prompt_tokens) else f"{rates.prompt_tokens:,.0f} prompt tokens/s"
    evidence = (prompts, _waiting(moment))
    return Diagnosis(bottleneck=Bottleneck.LONG_PROMPTS, evidence=tuple(filter(None, evidence)),
                     advice="limit the prompt length, or serve long prompts apart")  # fmt: skip


def _concurrency(moment: Moment) -> Diagnosis | None:
    load = moment.stats.load
    if load.max_concurrency is None or not load.queued or moment.waiting > SHORT_QUEUE:
        return None
    evidence = (f"{load.queued} requests queued at the client, limit {load.max_concurrency} in flight",)
    return Diagnosis(bottleneck=Bottleneck.CONCURRENCY, evidence=evidence, advice="raise the concurrency limit")


def _idle(moment: Moment) -> Diagnosis | None:
    idle = not moment.stats.rates.offered > 0 and moment.stats.load.in_flight == 0
    return Diagnosis(bottleneck=Bottleneck.IDLE) if idle else None


def _warming_up(moment: Moment) -> Diagnosis | None:
    ended = moment.ended_requests
    if moment.stage is not None and moment.stage.warmup:
        return Diagnosis(bottleneck=Bottleneck.WARMING_UP, evidence=("requests of the warm-up are not counted",))
    restarted = moment.stats.at - moment.restarted_at
    if restarted < WARM_SECONDS:
        return Diagnosis(bottleneck=Bottleneck.WARMING_UP, evidence=(f"the engine restarted {restarted:.0f} s ago",))
    if ended >= WARM_REQUESTS or (ended and not moment.stats.at - moment.load_since < WARM_SECONDS):
        return None
    return Diagnosis(bottleneck=Bottleneck.WARMING_UP, evidence=(f"{ended} of {WARM_REQUESTS} requests",))


def _headroom(moment: Moment) -> Diagnosis | None:
    stats = moment.stats
    if math.isnan(moment.waiting) and not stats.rates.completed >= KEEPS_UP * stats.rates.offered:
        return None
    memory = "" if math.isnan(moment.kv) else f"KV {_percent(moment.kv)}"
    closed = math.isinf(stats.load.request_rate or 0.0)
    advice = "raise the concurrency limit" if closed else "raise the rate"
    if moment.kv >= KV_HIGH:
        advice = "hold the load: the KV cache is nearly full"
    evidence = tuple(filter(None, ("the engine keeps up", _done(moment), memory)))
    return Diagnosis(bottleneck=Bottleneck.HEADROOM, evidence=evidence, advice=advice)


def _unclear(moment: Moment) -> Diagnosis:
    if moment.sample_age > STALE_AFTER:
        evidence = f"the engine's newest sample is {moment.sample_age:.1f} s old"
    else:
        evidence = f"the engine does not export its queue, {_done(moment)}"
    return Diagnosis(bottleneck=Bottleneck.UNCLEAR, evidence=(evidence,), advice="hold this stage until it is steady")


def _done(moment: Moment) -> str:
    """The completed rate; beside the offered one unless it is higher, as when a queue shrinks."""
    done, offered = moment.stats.rates.completed, moment.stats.rates.offered
    return f"done {done:.1f} of {offered:.1f} req/s" if done <= offered else f"done {done:.1f} req/s"


def _waiting(moment: Moment) -> str:
    return f"{moment.waiting:.0f} waiting" if moment.waiting > SHORT_QUEUE else ""


def _in_flight(count: int) -> str:
    return f"{count} in flight"


def _percent(share: float) -> str:
    """Format with one decimal, rounded down, so that `100.0 %` means all."""
    return f"{math.floor(share * 1000) / 10:.1f} %"
