"""The clauses of verdicts and stories, each with the observations without which it is not printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from servetop.analysis.diagnosis.observation import Observation as O


@dataclass(frozen=True, slots=True)
class Clause:
    """One kind of statement, with an example of its text."""

    example: str
    needs: tuple[frozenset[O], ...] = ()
    """Sets of observations, one of which must be complete; empty for what the run itself always knows."""

    def is_supported(self, known: frozenset[O]) -> bool:
        """Whether what was observed is enough for the clause."""
        return not self.needs or any(each <= known for each in self.needs)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A clause in the words and figures of one run."""

    clause: Clause
    text: str


Part = Phrase | Sequence[Phrase]
"""A phrase, or several from the strongest to the weakest: the first with its evidence is printed."""


def supported(parts: Iterable[Part], known: frozenset[O]) -> list[Phrase]:
    """Return the phrases that may be printed, given what was observed: those with a text and with their evidence."""
    found = []
    for part in parts:
        choices = [part] if isinstance(part, Phrase) else part
        allowed = (each for each in choices if each.text and each.clause.is_supported(known))
        found += [each for each in [next(allowed, None)] if each is not None]
    return found


def clause(example: str, *needs: Iterable[O]) -> Clause:
    """Return a clause that needs one of these sets of observations."""
    return Clause(example, tuple(frozenset(each) for each in needs))


ENGINE_FAILED = clause("engine failed at 0:35: vLLM ended with exit code 1")
NO_LOAD = clause("nothing was sent: the run has no load")
CHANGED = clause("the batch size changes: max_num_seqs 64 → 256")
FAILS = clause("requests fail: HTTP 429: Rate limit exceeded", {O.FAILURES})
FAILED_SHARE = clause("8 of 388 requests failed", {O.FAILURES})
SERVED = clause("443 requests served at 25 req/s, 0 failed", {O.COMPLETIONS})
CANCELLED = clause("1,030 cancelled unserved", {O.IN_FLIGHT})
WORST_TTFT = clause("TTFT p99 up to 11 s as felt", {O.TTFT})
CLIENT_LATE = clause("the client falls behind its schedule", {O.IN_FLIGHT})
OTHERS = clause("about 10 of 12 requests in the engine are not from this run", {O.QUEUE, O.RUNNING})
NETWORK = clause(
    "the network, a proxy or the server's front end holds requests: mean TTFT is 630 ms, the engine's own 21 ms",
    {O.ENGINE_TTFT, O.TTFT},
    {O.QUEUE, O.RUNNING, O.IN_FLIGHT},
)
KV = clause("KV-bound; the KV cache fills", {O.KV}, {O.PREEMPTIONS})
KV_HOLDS = clause("its 899 blocks hold about 41 sequences", {O.KV, O.KV_BLOCKS, O.RUNNING, O.QUEUE, O.REPLICAS})
KV_SEQUENCES = clause(
    "it holds about 41 sequences",
    {O.KV, O.RUNNING, O.QUEUE, O.REPLICAS},
    {O.PREEMPTIONS, O.RUNNING, O.QUEUE, O.REPLICAS},
)
KV_PEAK = clause("KV blocks at most 29% in use", {O.KV})
PREEMPTED = clause("116 preemptions; first preemption; 116 in all, up to 5.0/s", {O.PREEMPTIONS, O.REPLICAS})
BATCH = clause("batch-bound", {O.QUEUE, O.RUNNING, O.BATCH_LIMIT}, {O.QUEUE, O.RUNNING, O.KV, O.TTFT})
BATCH_FULL = clause("the batch of 16 is full", {O.QUEUE, O.RUNNING, O.BATCH_LIMIT})
BATCH_INFERRED = clause(
    "the engine runs at most 16 at once while requests wait: a batch limit of about 16",
    {O.QUEUE, O.RUNNING, O.KV, O.TTFT},
)
LONG_PROMPTS = clause("longer prompts arrive, and requests wait behind their prefill", {O.TTFT})
RATE = clause(
    "rate above capacity; requests arrive faster than the engine serves them, with free KV blocks and batch slots",
    {O.KV, O.RUNNING, O.IN_FLIGHT},
)
OVERLOADED = clause("overloaded", {O.QUEUE, O.REPLICAS}, {O.MANAGED})
PATH_OVERLOADED = clause("engine or network overloaded", {O.FIRST_TOKENS}, {O.IN_FLIGHT})
QUEUE_UNEXPLAINED = clause(
    "the queue grows; which limit holds it is unknown: the engine exports no batch limit", {O.QUEUE}
)
AWAITING_UNEXPLAINED = clause(
    "requests wait for their first token; which limit holds them is unknown: the engine exports no metrics",
    {O.FIRST_TOKENS, O.IN_FLIGHT},
)
ARRIVE_FASTER = clause(
    "more requests arrive than complete; which limit holds them is unknown: the engine exports no metrics",
    {O.IN_FLIGHT},
)
QUEUE_GROWS = clause("the queue grows, to 116 requests at 0:49; at most 116 waiting", {O.QUEUE, O.REPLICAS})
AWAITING = clause("up to 154 requests have no first token, at 0:50", {O.FIRST_TOKENS, O.IN_FLIGHT})
IN_FLIGHT_GROWS = clause("requests in flight grow from 160 to 940 at 0:40", {O.IN_FLIGHT, O.TARGET_RATE})
QUEUE_ENDED = clause("nothing waits any more, 23 s after the load fell", {O.QUEUE, O.REPLICAS})
ALL_STARTED = clause(
    "few requests wait for their first token any more, 23 s after the load fell", {O.FIRST_TOKENS, O.IN_FLIGHT}
)
STILL_WAIT = clause("requests still wait at the end of the run", {O.QUEUE}, {O.FIRST_TOKENS, O.IN_FLIGHT})
OTHER_OVERLOADS = clause("a shorter overload, for 8.0 s: KV-bound", {O.QUEUE}, {O.FIRST_TOKENS}, {O.IN_FLIGHT})
THROTTLED = clause("the GPU's clocks are throttled for 40 s: the rates are those of a slower engine", {O.GPU})
STALLED = clause("no token arrives for 3 s while requests are in flight", {O.FIRST_TOKENS, O.IN_FLIGHT})
HELD_BACK = clause("345 requests queued at the client by the limit of 4 in flight", {O.CLIENT_QUEUE})
COLD_START = clause("cold start until 0:20: TTFT p99 up to 3.0 s", {O.TTFT})
CACHE_FILLED = clause("the prefix cache fills from 0% to 97% of the prompt tokens", {O.PREFIX_CACHE})
NO_QUEUE = clause("no queue", {O.QUEUE, O.REPLICAS})
NO_FAILURE = clause("no failure", {O.COMPLETIONS})
KEPT_UP = clause("the engine kept up with the whole load", {O.COMPLETIONS})
UNCLEAR = clause("requests in flight still grew when the load ended: too short to tell", {O.COMPLETIONS}, {O.IN_FLIGHT})
PASSED = clause("an overload of 12 s passed within the objectives", {O.COMPLETIONS, O.IN_FLIGHT})
MISSED = clause("only 12% of the requests had TTFT ≤ 500 ms, TPOT ≤ 50 ms", {O.OBJECTIVES})
SUSTAINS = clause(
    "sustainable ≈ 11 req/s [9.4, 12.1] with TTFT ≤ 500 ms",
    {O.QUEUE, O.RUNNING, O.COMPLETIONS},
    {O.QUEUE, O.TTFT, O.COMPLETIONS},
)
SUSTAINS_BETWEEN = clause(
    "sustainable 5.5 to 12.6 req/s with TTFT ≤ 500 ms",
    {O.QUEUE, O.RUNNING, O.COMPLETIONS},
    {O.QUEUE, O.TTFT, O.COMPLETIONS},
)
SUSTAINS_LESS = clause("sustainable < 11 req/s (the batch has not drained)", {O.QUEUE, O.TTFT})
SUSTAINS_MORE = clause("sustainable ≥ 12 req/s with TTFT ≤ 500 ms", {O.STEADY_WINDOW, O.TARGET_RATE})
TRY_BATCH = clause(
    "try max_num_seqs 128",
    {O.RUNNING, O.QUEUE, O.KV, O.REPLICAS},
    {O.RUNNING, O.KV, O.PREEMPTIONS, O.REPLICAS},
)
TRY_LARGER_BATCH = clause("try a larger max_num_seqs", {O.RUNNING, O.QUEUE})
TRY_KV = clause("try more KV memory", {O.KV}, {O.PREEMPTIONS})
TRY_RESTART = clause(
    "try a restart of the engine, to free the KV blocks that no request uses",
    {O.KV, O.KV_BLOCKS, O.RUNNING, O.REPLICAS},
)
TRY_HIGHER = clause("try a higher rate", {O.STEADY_WINDOW, O.TARGET_RATE})
TRY_LOWER = clause("try a lower rate or more replicas", {O.TARGET_RATE})
TRY_METRICS = clause(
    "try a lower rate, or --metrics-url: the engine's own metrics tell whether it or the network is the limit",
    {O.TARGET_RATE},
)
TRY = clause("look at the server's log")
"""Advice that follows from the verdict alone."""
TRY_REPLICA = clause("try more KV memory for replica 2, or a load balancer that sends it less", {O.REPLICAS, O.QUEUE})
REPLICA = clause("replica 2 of 3 (http://gpu-2:8000)", {O.REPLICAS, O.QUEUE})
REPLICA_QUEUE = clause("at most 121 waiting at replica 2, 0 elsewhere", {O.REPLICAS, O.QUEUE})
REPLICA_KV = clause("KV blocks at most 100% in use at replica 2, 3% elsewhere", {O.REPLICAS, O.KV})
SWEEP = clause("best within TTFT ≤ 500 ms: 8 req/s", {O.COMPLETIONS}, {O.FAILURES}, {O.IN_FLIGHT})

CLAUSES = {name: value for name, value in sorted(globals().items()) if isinstance(value, Clause)}
"""All clauses by name."""
