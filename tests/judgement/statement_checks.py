"""Checks each statement about a run against its truth: true, false, or neither checkable nor a claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from tests.judgement.further_checks import FURTHER_CHECKS
from tests.judgement.known_truth import KnownTruth
from tests.judgement.live_checks import CAUSES, SETTLED, STALE, cause_now, keeps_up_now, near, nothing_now, waits_now
from tests.judgement.queue_truth import SHORT_QUEUE
from tests.judgement.rate_checks import is_about, is_at_least, is_below, is_between
from tests.judgement.scenario import Cause
from tests.judgement.statements import Statement, seconds_of
from tests.judgement.unnamed_checks import (
    UNNAMED_CHECKS,
    UNNAMED_OVERLOADS,
    felt_onsets,
    kept_up_after,
    overload_verdict,
)

FAR_ONSET = 10.0
"""Seconds by which an onset is false; what is nearer counts among the onsets within two seconds, or not."""
NEAR = 2.0
PAUSE = 1.0
"""Seconds without a token, as pages and ticks show them at least, after which a log may have the cause."""
Check = Callable[[Statement, KnownTruth], bool | None]


def check(statement: Statement, truth: KnownTruth) -> bool | None:
    """Whether a statement is true; None if it claims nothing that the truth decides."""
    found = CHECKS[statement.name](statement, truth)
    return None if found is None else bool(found)


def _cause(said: Statement, truth: KnownTruth) -> bool | None:
    """The onset counts too, except that of a slow network, of which the engine's state knows nothing."""
    cause = said.values["cause"] or ""
    if said.values["cold"] and cause == "headroom":
        return kept_up_after(said, truth)
    if said.live:
        return cause_now(cause, said.at or 0.0, truth, settled=SETTLED + said.page_age)
    verdict = overload_verdict(cause, truth) if cause not in CAUSES else truth.names(CAUSES[cause])
    paused = truth.cause is Cause.STALL
    if cause == "rate above capacity" and (paused or not truth.overloaded) and truth.kept_at(said.number("rate")):
        return False
    if verdict is False or not said.values["at"] or truth.cause is Cause.NETWORK:
        return verdict
    return False if onset_error(said, truth) > FAR_ONSET else verdict


def onset_error(said: Statement, truth: KnownTruth) -> float:
    """Seconds between the onset that a headline names and the nearest true one; NaN without either.

    Of failures beside another cause, the true one is that of the first failure; of an overload without a named limit,
    also that of requests that miss their objectives.
    """
    at, cause = seconds_of(said.values.get("at")), said.values["cause"] or ""
    # Printed without its fraction.
    first = truth.state.queues[0].start if truth.state.queues else truth.state.load_end
    if truth.outgrown and truth.state.last_load[0] <= at <= first:
        return 0.0
    fails = CAUSES.get(cause) is Cause.FAILING and truth.state.first_failure is not None
    onsets = [*truth.onsets, *([truth.state.first_failure or 0.0] if fails else [])]
    error = _distance(said, at, onsets)
    if cause in UNNAMED_OVERLOADS and error > FAR_ONSET:
        return _distance(said, at, [*onsets, *felt_onsets(truth, at)])
    return error


def _distance(said: Statement, at: float, onsets: Sequence[float]) -> float:
    """Seconds from a time to the nearest onset, or to the first one if it is said to be older; NaN without any."""
    if said.values.get("since") == "by":  # at that time or before
        return max(min(onsets, default=math.nan) - at - 1.0, 0.0)
    return min((max(onset - at - 1.0, at - onset, 0.0) for onset in onsets), default=math.nan)


def _preemptions(said: Statement, truth: KnownTruth) -> bool:
    if said.values["least"]:
        return said.number("count") <= len(truth.state.preemptions)
    return near(said.number("count"), len(truth.state.preemptions), relative=0.2, absolute=2)


def _worst(said: Statement, truth: KnownTruth) -> bool:
    """Whether it is that of the whole load, or after a cold start no more than that."""
    if said.values.get("cold"):
        return said.number("seconds") <= 1.25 * truth.state.worst_ttft + 0.002
    return near(said.number("seconds"), truth.state.worst_ttft, absolute=0.002)


def _within_objective(said: Statement, truth: KnownTruth) -> bool:
    """Histograms know each time within two percent."""
    low, high = (100 * truth.state.share_met(slack=slack) for slack in (0.98, 1.02))
    return low - 4 <= said.number("percent") <= high + 4


def _served(said: Statement, truth: KnownTruth) -> bool:
    """Warm-up requests are not among those served, so only more than all are too many."""
    served = sum(record.status == "ok" for record in truth.state.records)
    return said.number("ok") <= served and said.number("failed") == truth.state.failed


def _failed(said: Statement, truth: KnownTruth) -> bool:
    return said.number("failed") == truth.state.failed


def _kv_fills(said: Statement, truth: KnownTruth) -> bool | None:
    share = truth.state.limit_share(AdmissionLimit.KV)
    return bool(truth.state.preemptions) or share > 0.1


def _batch_full(said: Statement, truth: KnownTruth) -> bool:
    """Whether the size is right, and the batch was nine tenths full or more at that time."""
    facts, state, at = truth.state.run.header.engine, truth.state, said.at
    limit = (facts.max_num_seqs or 0) if facts else 0
    start, until = (0.0, math.inf) if at is None else (at - STALE, at + STALE)
    if said.number("size") in truth.other_limits:
        return bool(state.waiting[state.within(start, until)].max(initial=0) > 0)
    sizes = {count * limit for count in (1, truth.replicas)}
    total = said.values["size"] is None or any(near(said.number("size"), each, relative=0.1) for each in sizes)
    return total and state.fullest(start, until) >= 0.9 * limit


def _free_slots(said: Statement, truth: KnownTruth) -> bool | None:
    """Both were free for most of the time in which requests waited, or piled up in the batch."""
    held = truth.held_shares
    return None if math.isnan(held[0]) else sum(held) < 0.5


def _too_fast(said: Statement, truth: KnownTruth) -> bool | None:
    """For a moment, any rate may be too fast; for good, only one that the engine does not sustain."""
    if truth.state.closed:
        return False
    if truth.cause in (Cause.OTHERS, Cause.STALL) and truth.kept_at(truth.highest_rate):
        return False
    return True if truth.overloaded else None if truth.disturbed else False


def _long(said: Statement, truth: KnownTruth) -> bool | None:
    return False if truth.stationary else None


def _client_late(said: Statement, truth: KnownTruth) -> bool:
    return max(truth.state.late_sends, truth.state.late_in_closed_loop) > 0.01


def _fails(said: Statement, truth: KnownTruth) -> bool:
    return truth.state.failed > 0


def _see_log(said: Statement, truth: KnownTruth) -> bool | None:
    """Whether the log may tell more: of failures, of what pauses the engine, perhaps of a pause told as a fact."""
    silence = truth.state.silent_before(said.at or 0.0) if said.live else truth.state.longest_silence
    return True if truth.state.failed or truth.cause is Cause.STALL else None if silence >= PAUSE else False


def _no_queue(said: Statement, truth: KnownTruth) -> bool | None:
    return None if said.values["scrapes"] else not truth.state.overloaded


def _at_most(said: Statement, truth: KnownTruth) -> bool | None:
    """A queue of less than a second may be missed; nothing is said of the time between few scrapes."""
    if said.values["scrapes"]:
        return None
    longest = int(sorted(truth.state.waiting)[-10:][0])
    return said.number("count") >= 0.75 * longest - 3


def _kept_up(said: Statement, truth: KnownTruth) -> bool | None:
    if truth.cause is Cause.NETWORK:
        return None if truth.state.grew else True
    return truth.names(Cause.HEALTHY)


def _queue_grows(said: Statement, truth: KnownTruth) -> bool:
    """Whether as many requests waited; of an overload without a queue, whether as many were in flight."""
    state, at, count = truth.state, said.said_at or 0.0, said.number("count")
    start, until = at - 1.0 - STALE, at + 2.0
    ranges = [truth.waiting_between(start, until)]
    if truth.overloaded:
        flying = state.in_flight[state.within(start, until)]
        ranges.append((float(flying.min(initial=1_000)), float(flying.max(initial=0))))
    return any(0.75 * low - 3 <= count <= 1.25 * high + 3 for low, high in ranges)


def _nothing_waits(said: Statement, truth: KnownTruth) -> bool | None:
    """Nothing waits for at least half of the two seconds that begin two seconds later, in the engine or before it."""
    state, at = truth.state, said.at
    if at is None:
        return None
    within = state.within(at + NEAR, at + 2 * NEAR)
    queued = (state.waiting + state.held_back)[within] > SHORT_QUEUE
    return bool(queued.mean() < 0.5) if queued.size else True


def _still_wait(said: Statement, truth: KnownTruth) -> bool:
    end = truth.state.run.ticks[-1].end
    waited = (truth.state.waiting + truth.state.held_back)[truth.state.within(end - STALE, end)]
    return truth.left > 0 or bool(waited.max(initial=0) > SHORT_QUEUE)


def _shorter(said: Statement, truth: KnownTruth) -> bool | None:
    """Nothing needs to wait in the engine for one of the engine or the network."""
    if truth.cause is Cause.NETWORK and said.values["cause"] == "engine or network overloaded":
        return None
    return None if truth.waiting_between(0.0, math.inf)[1] > SHORT_QUEUE else False


def _shorter_ones(said: Statement, truth: KnownTruth) -> bool | None:
    starts = [seconds_of(each) for each in (said.values["times"] or "").split(", ")]
    queued = [truth.waiting_between(at - STALE, at + 3)[1] > SHORT_QUEUE for at in starts]
    return None if all(queued) else False


def _raise_batch(said: Statement, truth: KnownTruth) -> bool:
    return truth.state.first_limited(AdmissionLimit.BATCH) is not None


def _batch_advice(said: Statement, truth: KnownTruth) -> bool | None:
    """A smaller batch holds off preemptions, a larger one helps where the batch was full; on the verdict line, then."""
    limit, size = truth.scenario.plan.spec.batch_limit, said.number("size")
    if said.values["memory"]:
        now = said.live and cause_now("KV-bound", said.at or 0.0, truth)
        return None if size < limit and (now or truth.names(Cause.KV) is not False) else False
    if truth.names(Cause.KV) is not False:
        return size <= max(truth.state.running.max(initial=0) / truth.replicas, 1) or None
    return size > limit and _raise_batch(said, truth)


def _more_kv(said: Statement, truth: KnownTruth) -> bool | None:
    return bool(truth.state.preemptions) or truth.state.first_limited(AdmissionLimit.KV) is not None


def _lower_rate(said: Statement, truth: KnownTruth) -> bool | None:
    state, at = truth.state, said.at
    if state.closed:
        return False
    if not said.live or at is None:
        helps = truth.disturbed or truth.kept_at(truth.highest_rate) is False
        return truth.overloaded or (None if helps else truth.names(Cause.HEALTHY) is False)
    waits = state.waiting[state.within(at - 20.0, at)].max(initial=0) > SHORT_QUEUE
    return True if waits or truth.outgrown else cause_now("queue growing", at, truth)


def _raise_load(said: Statement, truth: KnownTruth) -> bool | None:
    at = said.at
    if not said.live or at is None:
        kept = truth.kept_at(truth.highest_rate) is True  # only a cold start missed its objectives
        return False if not kept and (truth.overloaded or truth.names(Cause.HEALTHY) is False) else None
    return None if keeps_up_now(said, truth) is None else False


def _limit_prompts(said: Statement, truth: KnownTruth) -> bool | None:
    return False if truth.stationary else None


def _held_now(said: Statement, truth: KnownTruth) -> bool:
    """By the client's own count: requests that are given up are in no record."""
    state, at = truth.state, said.at or 0.0
    limits = {stage.max_concurrency for stage in state.run.stages}
    held = [tick.client.gauges.queued for tick in state.run.ticks if at - 2.0 <= tick.end <= at] or [0]
    return said.number("limit") in limits and min(held) - 3 <= said.number("count") <= max(held) + 3


def _reading(said: Statement, truth: KnownTruth) -> None:
    """A figure as the engine's page or the client's counters have it, or what is not known."""


CHECKS: dict[str, Check] = {
    **UNNAMED_CHECKS,
    **FURTHER_CHECKS,
    "cause": _cause,
    "quiet": _reading, "preemptions": _preemptions, "worst TTFT": _worst, "TTFT rises": _worst,
    "sustainable about": is_about, "sustainable between": is_between,
    "sustainable at least": is_at_least, "sustainable below": is_below,
    "within objective": _within_objective, "served": _served, "failed": _failed, "KV peak": _reading,
    "KV fills": _kv_fills, "batch full": _batch_full, "too fast": _too_fast, "free slots": _free_slots,
    "longer prompts": _long, "client behind": _client_late, "late share": _client_late, "requests fail": _fails,
    "no queue": _no_queue, "at most waiting": _at_most, "no failure": lambda _, truth: not truth.state.failed,
    "kept up": _kept_up, "queue grows": _queue_grows, "nothing waits": _nothing_waits, "still wait": _still_wait,
    "shorter overload": _shorter, "shorter overloads": _shorter_ones, "raise batch": _raise_batch,
    "batch advice": _batch_advice, "more KV": _more_kv, "lower rate": _lower_rate, "lower load": _reading,
    "raise load": _raise_load, "limit prompts": _limit_prompts, "faster client": _client_late, "see log": _see_log,
    "client late too": _client_late,
    "unshared server": lambda _, truth: truth.shared, "wait": _reading, "keeps up now": keeps_up_now,
    "waits now": waits_now, "nothing waits now": nothing_now, "running now": _reading, "failing now": _fails,
    "late now": _client_late, "held now": _held_now, "unknown": _reading, "reading": _reading,
}  # fmt: skip
"""The check of each pattern."""
