"""The clauses of the verdict of one time, each with the observations without which it is not shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from servetop.analysis.diagnosis.clauses import Clause, Part, clause, supported
from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.moment import Moment
from servetop.analysis.diagnosis.observation import Observation as O
from servetop.analysis.engine_gauges import kv_usage

IN_FLIGHT = clause("12 in flight", {O.IN_FLIGHT})
GROWS = clause("80 in flight, up by 25 within 5 s", {O.IN_FLIGHT})
DONE = clause("done 12.0 of 16.0 req/s", {O.COMPLETIONS})
FAILED_SHARE = clause("12% of requests", {O.FAILURES})
NO_TOKEN = clause("no token for 3 s", {O.FIRST_TOKENS})
THROTTLED = clause("the GPU's clocks are throttled", {O.GPU})
OTHERS = clause("about 10 of 12 requests in the engine are not from this run", {O.QUEUE, O.RUNNING})
CLIENT_LATE = clause("requests were sent late during the last seconds")
"""The trust meter's reasons, each of which is a figure of the client."""
QUEUED = clause("12 requests queued at the client, limit 16 in flight", {O.CLIENT_QUEUE})
WAITING = clause("31 waiting; nothing waits", {O.QUEUE})
AT_REPLICA = clause("31 waiting at replica 2 of 3", {O.QUEUE, O.REPLICAS})
REPLICA_KV = clause("KV blocks full there", {O.KV, O.REPLICAS})
REPLICA_BATCH = clause("batch full there", {O.QUEUE, O.RUNNING, O.REPLICAS})
SEND_LESS = clause("send less to replica 2, or lower the rate", {O.QUEUE, O.REPLICAS})
NO_FIRST_TOKEN = clause("up to 154 without a first token", {O.FIRST_TOKENS})
UNKNOWN_CAUSE = clause("cause unknown without the engine's batch limit")
KV_PEAK = clause("up to 99.7 % of blocks; KV 29.0 %", {O.KV})
PREEMPTED = clause("2.0 preemptions/s", {O.PREEMPTIONS})
BATCH_FULL = clause("running 16 of 16", {O.RUNNING, O.QUEUE})
RUNNING = clause("16 running", {O.RUNNING})
PROMPT_TOKENS = clause("5,000 prompt tokens/s", {O.TTFT})
KEPT = clause("62% of the requests keep the objectives", {O.OBJECTIVES})
KEEPS_UP = clause("the engine keeps up", {O.COMPLETIONS})
RAISE_LIMIT = clause("raise the concurrency limit", {O.QUEUE})
HINT = clause("look at the server's log")
"""Advice that follows from the verdict alone."""
TRY_BATCH = clause(
    "max_num_seqs ≈ 26 or more KV memory; raise max_num_seqs", {O.KV}, {O.PREEMPTIONS}, {O.RUNNING, O.QUEUE}
)

VERDICTS: Mapping[Bottleneck, Clause] = {
    Bottleneck.FAILING: clause("failing", {O.FAILURES}),
    Bottleneck.STALL: clause("stalled", {O.FIRST_TOKENS}),
    Bottleneck.OTHERS: clause("other traffic", {O.QUEUE, O.RUNNING}),
    Bottleneck.KV: clause("KV-bound", {O.KV}, {O.PREEMPTIONS}),
    Bottleneck.BATCH: clause("batch-bound", {O.QUEUE, O.RUNNING}),
    Bottleneck.LONG_PROMPTS: clause("long prompts", {O.TTFT}),
    Bottleneck.CONCURRENCY: clause("concurrency-limited", {O.CLIENT_QUEUE}),
    Bottleneck.QUEUE: clause("queue growing", {O.QUEUE}),
    Bottleneck.OVERLOADED: clause("overloaded", {O.IN_FLIGHT}),
    Bottleneck.PATH_OVERLOADED: clause("engine or network overloaded", {O.IN_FLIGHT}),
    Bottleneck.MISSED: clause("objectives missed", {O.OBJECTIVES, O.COMPLETIONS}),
    Bottleneck.SETTLING: clause("settling", {O.IN_FLIGHT}),
    Bottleneck.HEADROOM: clause("headroom", {O.COMPLETIONS}),
    Bottleneck.WAITING: clause("requests wait", {O.QUEUE}),
    Bottleneck.SERVING: clause("serving", {O.RUNNING}, {O.QUEUE}),
}
"""The clause of each verdict's name; those of states without a load need nothing."""
LIVE_CLAUSES = {
    **{f"verdict {name.value}": value for name, value in VERDICTS.items()},
    **{name: value for name, value in sorted(globals().items()) if isinstance(value, Clause)},
}
"""All clauses of the verdict of one time, by name."""


def diagnosis(
    moment: Moment, bottleneck: Bottleneck, evidence: Iterable[Part] = (), advice: Iterable[Part] = ()
) -> Diagnosis | None:
    """Return a diagnosis with what may be said of a time; None if the observations do not support its name.

    Of the advice, which is given from the strongest on, the first that is supported is shown.
    """
    known = observed_now(moment)
    if bottleneck in VERDICTS and not VERDICTS[bottleneck].is_supported(known):
        return None
    shown = tuple(each.text for each in supported(evidence, known))
    tried = next((each.text for each in supported(advice, known)), "")
    return Diagnosis(bottleneck=bottleneck, evidence=shown, advice=tried)


def observed_now(moment: Moment) -> frozenset[O]:
    """Return what is known at a time: by the newest sample, however old it is, by the client, and by what lasts."""
    stats, sample = moment.stats, moment.stats.engine
    proved = frozenset[O]().union(*(_PROOFS.get(each.kind, frozenset()) for each in moment.episodes))
    seen = {
        O.QUEUE: sample is not None and sample.waiting is not None,
        O.RUNNING: sample is not None and sample.running is not None,
        O.KV: not math.isnan(kv_usage(sample)),
        O.PREEMPTIONS: not math.isnan(stats.rates.preemptions),
        O.FIRST_TOKENS: bool(stats.totals.output_tokens),
        O.TTFT: bool(stats.totals.completed or stats.totals.output_tokens),
        O.COMPLETIONS: bool(stats.totals.completed),
        O.FAILURES: bool(stats.totals.failed),
        O.IN_FLIGHT: not moment.watched,
        O.CLIENT_QUEUE: bool(stats.load.queued),
        O.REPLICAS: bool(moment.replicas),
        O.OBJECTIVES: not math.isnan(stats.attainment.window),
    }
    return frozenset(each for each, known in seen.items() if known) | proved


_PROOFS: Mapping[EpisodeKind, frozenset[O]] = {
    EpisodeKind.KV: frozenset({O.KV}),
    EpisodeKind.PREEMPTIONS: frozenset({O.PREEMPTIONS}),
    EpisodeKind.BATCH: frozenset({O.QUEUE, O.RUNNING}),
    EpisodeKind.QUEUE: frozenset({O.QUEUE}),
    EpisodeKind.LONG_PROMPTS: frozenset({O.TTFT}),
    EpisodeKind.AWAITING: frozenset({O.FIRST_TOKENS}),
    EpisodeKind.STALL: frozenset({O.FIRST_TOKENS}),
    EpisodeKind.FAILING: frozenset({O.FAILURES}),
    EpisodeKind.THROTTLED: frozenset({O.GPU}),
}
"""What must have been observed for an episode of this kind to be there."""
