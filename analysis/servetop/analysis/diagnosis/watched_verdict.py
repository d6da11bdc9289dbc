"""The verdict of one time of a watched server, by the rules that need no client."""

from __future__ import annotations

import math
from dataclasses import replace

from servetop.analysis.diagnosis import live_clauses as clauses
from servetop.analysis.diagnosis.clauses import Phrase
from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.live_clauses import diagnosis
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.overload_now import batch_bound, kv_bound, percent, waiting
from servetop.analysis.diagnosis.queue_detectors import BATCH_FULL, SHORT_QUEUE
from servetop.analysis.engine_gauges import KV_ROOMY
from servetop.analysis.series.page_rates import RARE
from servetop.core.interfaces.sampled_values import has_values
from servetop.core.text.counted import counted
from servetop.core.text.formats import clock

NOT_JUDGED = "the server answers, and has no metrics by which servetop knows its limits"


def watched_verdict(moment: Moment) -> Diagnosis:
    """Return what limits the server, or what it does, as far as its own metrics show it."""
    if moment.facts is None:
        return Diagnosis(bottleneck=Bottleneck.STARTING, evidence=("attaching to the server",))
    if not moment.fresh:
        newest = max(moment.stats.at - moment.sample_age, 0.0)  # a Prometheus server may have it from before
        since = "" if math.isnan(moment.sample_age) else f"since {clock(newest)}"
        return Diagnosis(bottleneck=Bottleneck.NO_METRICS, evidence=tuple(filter(None, [since])))
    if not has_values(moment.stats.engine):
        return Diagnosis(bottleneck=Bottleneck.NOT_JUDGED, evidence=(NOT_JUDGED,))
    for rule in (_failing, _kv, _batch, _waits, _idle, _serves):
        found = rule(moment)
        if found is not None:
            return replace(found, evidence=(*found.evidence, *_rare(moment)))
    return Diagnosis(
        bottleneck=Bottleneck.UNCLEAR, evidence=("the engine exports neither its queue nor its running sequences",)
    )


def _rare(moment: Moment) -> tuple[str, ...]:
    """Return how often the source has new metrics, if that is rarely: what is between two of them is not known."""
    interval = moment.stats.sample_interval
    return (f"metrics every {interval:.0f} s",) if interval >= RARE else ()


def _failing(moment: Moment) -> Diagnosis | None:
    """Return a server that fails requests by its own counters, with the share of them and what it does besides."""
    episode, share = moment.episode(EpisodeKind.FAILING), moment.stats.rates.engine_failed_share
    if episode is None:
        return None
    known = f"{share:.0%} of requests" if share > 0 else f"{counted(round(episode.total), 'request')} failed"
    evidence = [Phrase(clauses.FAILED_SHARE, known), _running(moment), waiting(moment), _memory(moment)]
    return diagnosis(moment, Bottleneck.FAILING, evidence, [Phrase(clauses.HINT, "look at the server's log")])


def _kv(moment: Moment) -> Diagnosis | None:
    emptied = moment.kv < KV_ROOMY and not moment.stats.rates.preemptions > 0
    return kv_bound(moment) if moment.limit is Limit.KV and not (emptied and _nothing_waits(moment)) else None


def _batch(moment: Moment) -> Diagnosis | None:
    """Return a full batch; one that has free slots again, and no queue, is over before that is confirmed."""
    sample, episode = moment.stats.engine, moment.episode(EpisodeKind.BATCH)
    running = math.nan if sample is None or sample.running is None else sample.running
    free = episode is not None and running < BATCH_FULL * episode.batch
    return batch_bound(moment) if moment.limit is Limit.BATCH and not (free and _nothing_waits(moment)) else None


def _nothing_waits(moment: Moment) -> bool:
    """Whether the newest metrics show no queue; False if they have no count of it."""
    return moment.waiting <= SHORT_QUEUE


def _waits(moment: Moment) -> Diagnosis | None:
    if moment.episode(EpisodeKind.QUEUE) is None or _nothing_waits(moment):
        return None
    unknown = f"cause unknown without the engine's {moment.missing}" if moment.missing else ""
    evidence = [waiting(moment), _running(moment), _memory(moment), Phrase(clauses.UNKNOWN_CAUSE, unknown)]
    return diagnosis(moment, Bottleneck.WAITING, evidence)


def _idle(moment: Moment) -> Diagnosis | None:
    sample = moment.stats.engine
    idle = sample is not None and sample.running == 0 and moment.waiting == 0
    return Diagnosis(bottleneck=Bottleneck.IDLE) if idle else None


def _serves(moment: Moment) -> Diagnosis | None:
    """Return a server without an overload; a few waiting requests are about to join the batch."""
    calm = Phrase(clauses.WAITING, "nothing waits" if moment.waiting == 0 else "")
    queue = calm if not moment.waiting > SHORT_QUEUE else waiting(moment)
    return diagnosis(moment, Bottleneck.SERVING, [_running(moment), queue, _memory(moment)])


def _running(moment: Moment) -> Phrase:
    sample = moment.stats.engine
    known = sample is not None and sample.running is not None
    return Phrase(clauses.RUNNING, f"{sample.running:.0f} running" if sample is not None and known else "")


def _memory(moment: Moment) -> Phrase:
    return Phrase(clauses.KV_PEAK, "" if math.isnan(moment.kv) else f"KV {percent(moment.kv)}")
