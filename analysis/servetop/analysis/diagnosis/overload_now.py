"""The verdict of one time in an overload: the limit with its evidence and advice."""

from __future__ import annotations

import math

from servetop.analysis.diagnosis import live_clauses as clauses
from servetop.analysis.diagnosis.clauses import Part, Phrase
from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.live_clauses import diagnosis
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.overload import QUEUES, Limit
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.replicas_now import busy_replicas
from servetop.analysis.engine_gauges import KV_ROOMY
from servetop.core.text import formats


def kv_bound(moment: Moment) -> Diagnosis | None:
    """Return a full KV cache: its usage, preemptions and queue."""
    rates, emptied = moment.stats.rates, moment.kv_peak < KV_ROOMY
    preempting = moment.episode(EpisodeKind.PREEMPTIONS) is not None and rates.preemptions > 0
    preempted = (
        f"{rates.preemptions * moment.stats.window:.0f} preemptions in the last {moment.stats.window:.0f} s"
        if emptied
        else f"{rates.preemptions:.1f} preemptions/s"
    )
    usage = ""
    if not math.isnan(moment.kv) and not math.isnan(moment.kv_peak):
        usage = f"full before, now {percent(moment.kv)}" if emptied else f"up to {percent(moment.kv_peak)}"
    evidence = (
        Phrase(clauses.KV_PEAK, f"{usage} of blocks" if usage else ""),
        Phrase(clauses.PREEMPTED, preempted if preempting else ""),
        waiting(moment),
    )
    return diagnosis(moment, Bottleneck.KV, evidence, [Phrase(clauses.TRY_BATCH, _kv_advice(moment))])


def _kv_advice(moment: Moment) -> str:
    """Return what to change about a full KV cache, by the state when it was detected, so that it does not change.

    A batch size is that of each replica, which is not known if one has no metrics.
    """
    preempting = moment.episode(EpisodeKind.PREEMPTIONS) is not None
    size = next((each for each in moment.episodes if each.fits), None) if moment.knows_every_replica else None
    if preempting and size is not None and not size.fits >= size.batch:
        return f"max_num_seqs ≈ {size.fits} or more KV memory"
    return "more KV memory, or shorter requests"


def batch_bound(moment: Moment) -> Diagnosis | None:
    """Return a full batch: its size, queue and KV usage."""
    sample, episode = moment.stats.engine, moment.episode(EpisodeKind.BATCH)
    running = sample.running if sample is not None and moment.fresh else None
    size = math.nan if episode is None else episode.batch
    roomy = moment.kv < KV_ROOMY
    memory = "" if math.isnan(moment.kv) else f"KV {'only ' if roomy else ''}{percent(moment.kv)}"
    full = "" if running is None or math.isnan(size) else f"running {running:.0f} of {size:.0f}"
    less = "more replicas or KV memory" if moment.watched else "lower the rate"
    advice = "raise max_num_seqs" if roomy or not memory else f"{less}: a larger batch would soon fill the KV blocks"
    evidence = (Phrase(clauses.BATCH_FULL, full), waiting(moment), Phrase(clauses.KV_PEAK, memory))
    return diagnosis(moment, Bottleneck.BATCH, evidence, [Phrase(clauses.TRY_BATCH, advice)])


def queue_growing(moment: Moment) -> Diagnosis | None:
    """A queue, or requests that pile up, without KV blocks or a batch that is full: only what is known of the cause."""
    rates, load = moment.stats.rates, moment.stats.load
    awaiting, piling = moment.episode(EpisodeKind.AWAITING), moment.episode(EpisodeKind.IN_FLIGHT)
    visible = moment.waiting > SHORT_QUEUE or moment.episode(*QUEUES) is not None
    piled = in_flight_text(load.in_flight) if piling is not None or math.isnan(moment.waiting) else ""
    late = f"up to {awaiting.worst:,.0f} without a first token" if awaiting is not None else ""
    busy = busy_replicas(moment)
    full = [] if busy is None else busy.full()
    missing = moment.missing if moment.limit is Limit.UNKNOWN and not full else ""
    evidence: list[Part] = [
        waiting(moment) if visible or not piled else [],
        full,
        [Phrase(clauses.NO_FIRST_TOKEN, late), Phrase(clauses.IN_FLIGHT, piled)],
        done(moment),
        Phrase(clauses.UNKNOWN_CAUSE, f"cause unknown without the engine's {missing}" if missing else ""),
    ]
    path = _may_wait_before(moment)
    lower = f"lower the rate below {rates.completed:.1f}" if rates.completed > 0 else "lower the rate"
    lower = "hold this stage until it is steady, or lower the rate" if path else lower
    limit = "lower the concurrency limit" if load.max_concurrency else "set a concurrency limit"
    lower = limit if is_closed(moment) else lower
    elsewhere = "" if busy is None else f"send less to {busy.name}, or {lower}"
    advice = [Phrase(clauses.SEND_LESS, elsewhere), Phrase(clauses.HINT, lower)]
    weaker = Bottleneck.PATH_OVERLOADED if path else Bottleneck.OVERLOADED
    names = (Bottleneck.QUEUE, weaker) if visible else (weaker,)
    return next(filter(None, (diagnosis(moment, name, evidence, advice) for name in names)), None)


def _may_wait_before(moment: Moment) -> bool:
    """Whether the network may hold the requests: no limit is seen, nor the queue of a server that was there before."""
    sample, facts = moment.stats.engine, moment.facts
    attached = facts is not None and facts.attached
    return attached and moment.limit is Limit.UNKNOWN and (sample is None or sample.waiting is None)


def long_prompts(moment: Moment) -> Diagnosis | None:
    """Long prompts: their tokens/s and the queue."""
    rates = moment.stats.rates
    prompts = "" if math.isnan(rates.prompt_tokens) else f"{rates.prompt_tokens:,.0f} prompt tokens/s"
    evidence = (Phrase(clauses.PROMPT_TOKENS, prompts), waiting(moment))
    advice = Phrase(clauses.HINT, "limit the prompt length, or serve long prompts apart")
    return diagnosis(moment, Bottleneck.LONG_PROMPTS, evidence, [advice])


def is_closed(moment: Moment) -> bool:
    """Whether the load is a closed loop."""
    return not moment.scheduled and math.isinf(moment.stats.load.request_rate or 0.0)


def done_text(moment: Moment) -> str:
    """Return the completed rate; beside the offered one unless it is higher, as when a queue shrinks."""
    completed, offered = moment.stats.rates.completed, moment.stats.rates.offered
    return f"done {completed:.1f} of {offered:.1f} req/s" if completed <= offered else f"done {completed:.1f} req/s"


def done(moment: Moment) -> Phrase:
    """Return the completed rate, beside the offered one unless it is higher, as when a queue shrinks."""
    return Phrase(clauses.DONE, done_text(moment))


def waiting(moment: Moment) -> Phrase:
    """The requests that wait at the engine, and where, if at some replicas only; an empty text if that is unknown."""
    busy = busy_replicas(moment)
    if busy is not None:
        return Phrase(clauses.AT_REPLICA, f"{busy.waiting:.0f} waiting at {busy.name} of {busy.count}")
    return Phrase(clauses.WAITING, "" if math.isnan(moment.waiting) else f"{moment.waiting:.0f} waiting")


def in_flight(moment: Moment) -> Phrase:
    """Return the requests in flight."""
    return Phrase(clauses.IN_FLIGHT, in_flight_text(moment.stats.load.in_flight))


def in_flight_text(count: int) -> str:
    """Some requests in flight."""
    return f"{count} in flight"


def percent(share: float) -> str:
    """Format with one decimal, rounded down, so that `100.0 %` means all."""
    return formats.percent(share, zeros="always")
