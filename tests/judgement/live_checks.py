"""Checks what the verdict line says while a run goes on, against the state of the seconds before."""

from __future__ import annotations

import math
import re

import numpy as np

from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from tests.judgement.known_truth import KnownTruth
from tests.judgement.queue_truth import LATE_SEND, SHORT_QUEUE
from tests.judgement.scenario import Cause
from tests.judgement.statements import Statement

CAUSES = {
    "KV-bound": Cause.KV, "batch-bound": Cause.BATCH, "rate above capacity": Cause.RATE,
    "long prompts": Cause.LONG_PROMPTS, "client-bound": Cause.CLIENT, "failing": Cause.FAILING,
    "engine failed": Cause.FAILING, "headroom": Cause.HEALTHY, "other traffic": Cause.OTHERS,
    "concurrency-limited": Cause.CONCURRENCY, "objectives missed": Cause.MISSED, "stalled": Cause.STALL,
    "network-bound": Cause.NETWORK,
}  # fmt: skip
"""The truth that each name of a verdict claims."""
STALE = 6.0
"""Seconds that an engine's page may be older than the verdict line."""
WINDOW = 12.0
"""Seconds from which a gauge on the verdict line may be."""
NEXT_STEP = 1.0
"""Seconds within which the scheduler decides again."""
SETTLED = 10.0
"""Seconds of trouble after which the verdict line must not deny it."""


def near(said: float, true: float, *, relative: float = 0.25, absolute: float = 0.0) -> bool:
    """Whether a figure is right within a relative and an absolute tolerance, whichever is larger."""
    return abs(said - true) <= max(relative * abs(true), absolute)


def cause_now(cause: str, at: float, truth: KnownTruth, *, settled: float = SETTLED) -> bool | None:
    """Whether the name on the verdict line holds for the last seconds."""
    state, start = truth.state, at - 20.0
    match cause:
        case "KV-bound" | "batch-bound":
            limit = AdmissionLimit.KV if cause == "KV-bound" else AdmissionLimit.BATCH
            share = state.limit_share(limit, start, at)
            preempted = limit is AdmissionLimit.KV and any(start <= each <= at for each in state.preemptions)
            return preempted or (None if math.isnan(share) else share > 0.1)
        case "queue growing" | "overloaded":
            waits = truth.waiting_between(start, at)[1] > SHORT_QUEUE
            grows = state.mean(state.in_flight, at - 2, at) > 1.1 * state.mean(state.in_flight, start, start + 2)
            return None if waits or grows else False
        case "headroom":
            begin, end = state.last_load
            leaks = truth.scenario.plan.leak is not None  # it served the load before
            grows = truth.outgrown and not leaks and at > (begin + end) / 2
            return False if grows or state.queue_acts(at, since=settled) else None
        case "concurrency-limited":
            return state.closed or any(stage.max_concurrency for stage in state.run.stages)
        case "other traffic" | "long prompts":
            return None if truth.names(CAUSES[cause]) is not False else False
        case "client-bound":
            late = [each for each in state.records if (each.sent or 0.0) - each.due > LATE_SEND]
            return any(start - 10 <= each.due <= at for each in late)
        case _:
            return None


def waits_now(said: Statement, truth: KnownTruth) -> bool:
    at, count = said.at or 0.0, said.number("count")
    low, high = truth.waiting_between(at - WINDOW, at)
    return 0.75 * low - 3 <= count <= 1.25 * high + 3


def waits_there_now(said: Statement, truth: KnownTruth) -> bool:
    """Whether that many requests waited at these replicas, and for a moment few at the others."""
    state, at, count = truth.state, said.at or 0.0, said.number("count")
    named = {int(each) - 1 for each in re.findall(r"\d+", said.values["replicas"] or "")}
    within = state.within(at - WINDOW, at)
    there = state.waiting_at(named)[within]
    elsewhere = state.waiting_at(set(range(truth.replicas)) - named)[within]
    arrived = np.maximum(state.in_flight - state.running, 0)[within]  # during an iteration
    most = max(there.max(initial=0), arrived.max(initial=0))
    right = 0.75 * there.min(initial=0) - 3 <= count <= 1.25 * most + 3
    return right and bool(elsewhere.min(initial=1_000) <= SHORT_QUEUE * truth.replicas)


def full_there_now(said: Statement, truth: KnownTruth) -> bool:
    """Whether this kept requests waiting during the last seconds, or at the next decision of the scheduler.

    A page shows the blocks that an iteration takes; the log of admissions has only what followed from them.
    """
    limit = AdmissionLimit.KV if said.values["what"] == "KV blocks" else AdmissionLimit.BATCH
    at = said.at or 0.0
    return truth.state.limit_share(limit, at - WINDOW, at + NEXT_STEP) > 0


def nothing_now(said: Statement, truth: KnownTruth) -> bool:
    state, at = truth.state, said.at or 0.0
    part = state.waiting[state.within(at - STALE, at)]
    return bool(part.min(initial=1_000) <= SHORT_QUEUE)


def keeps_up_now(said: Statement, truth: KnownTruth) -> bool | None:
    return cause_now("headroom", said.at or 0.0, truth, settled=SETTLED + said.page_age)
