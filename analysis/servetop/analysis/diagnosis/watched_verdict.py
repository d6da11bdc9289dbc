"""The verdict of one time of a watched server, by the rules that need no client."""

from __future__ import annotations

import math

from servetop.analysis.diagnosis import live_clauses as clauses
from servetop.analysis.diagnosis.clauses import Phrase
from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.live_clauses import diagnosis
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.diagnosis.overload_now import batch_bound, kv_bound, percent, waiting
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.core.text.formats import clock


def watched_verdict(moment: Moment) -> Diagnosis:
    """Return what limits the server, or what it does, as far as its own metrics show it."""
    if moment.facts is None:
        return Diagnosis(bottleneck=Bottleneck.STARTING, evidence=("attaching to the server",))
    if not moment.fresh:
        since = "" if math.isnan(moment.sample_age) else f"since {clock(moment.stats.at - moment.sample_age)}"
        return Diagnosis(bottleneck=Bottleneck.NO_METRICS, evidence=tuple(filter(None, [since])))
    for rule in (_kv, _batch, _waits, _idle, _serves):
        found = rule(moment)
        if found is not None:
            return found
    return Diagnosis(
        bottleneck=Bottleneck.UNCLEAR, evidence=("the engine exports neither its queue nor its running sequences",)
    )


def _kv(moment: Moment) -> Diagnosis | None:
    return kv_bound(moment) if moment.limit is Limit.KV else None


def _batch(moment: Moment) -> Diagnosis | None:
    return batch_bound(moment) if moment.limit is Limit.BATCH else None


def _waits(moment: Moment) -> Diagnosis | None:
    if moment.episode(EpisodeKind.QUEUE) is None:
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
