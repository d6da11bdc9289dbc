"""What a run shows, whatever it was drawn for: its cause by the simulator's state."""

from __future__ import annotations

import dataclasses

import numpy as np

from servetop.simulator.virtual_run.admission_log import AdmissionLimit
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.known_truth import LIMITS, SHARE_KEPT, KnownTruth
from tests.judgement.queue_truth import LATE_SEND, SHORT_QUEUE
from tests.judgement.run_state import STEP, RunState
from tests.judgement.scenario import Cause, Scenario, Truth

CLEAR = 0.75
"""Fraction of the harmful waiting time that one limit must account for."""
_LATE = 0.05
"""Fraction of the requests that a slow client sends late."""
_ENOUGH = 0.99
"""Fraction of the requests that meet their objectives in a healthy run."""


def shown(
    plan: VirtualRunPlan, *, kind: str, base: ConstantRates | None, detail: str = "", run: VirtualRun | None = None
) -> Scenario:
    """Run the plan, and return it with the truth that it shows; `run` if it was run before."""
    run = run_virtually(plan) if run is None else run
    name = plan.config.label
    blank = Scenario(name=name, kind=kind, plan=plan, truth=Truth(cause=Cause.UNCLEAR, detail=detail), base=base)
    truth = _truth(KnownTruth(blank.keeping(run)), detail)
    return dataclasses.replace(blank, truth=truth).keeping(run)


def _truth(known: KnownTruth, detail: str) -> Truth:
    state = known.state
    if state.harmful_queues:
        return _limited(state, detail)
    if state.failed >= 0.01 * len(state.records):
        first = min(each.done_at or 0.0 for each in state.records if each.error is not None)
        return Truth(cause=Cause.FAILING, onset=first, detail=detail)
    if state.late_sends > _LATE:
        sent_late = [each.due for each in state.records if (each.sent or 0.0) - each.due > LATE_SEND]
        return Truth(cause=Cause.CLIENT, onset=min(sent_late), detail=detail)
    if state.held:
        onset = float(state.times[np.argmax(state.held_back > SHORT_QUEUE)])
        return Truth(cause=Cause.CONCURRENCY, onset=onset, detail=detail)
    if known.outgrown:
        return Truth(cause=Cause.RATE, onset=state.last_load[0], detail=detail)
    calm = not state.queues and not state.preemptions and not state.grew and not known.left
    met = state.share_met()
    cause = Cause.HEALTHY if calm and met >= _ENOUGH else Cause.MISSED if met < SHARE_KEPT else Cause.UNCLEAR
    return Truth(cause=cause, detail=detail)


def _limited(state: RunState, detail: str) -> Truth:
    """The limit that kept most of the harmful queues waiting; the others' share decides whether it is clear."""
    shares = {cause: limited_share(state, limit) for cause, limit in LIMITS.items()}
    cause = max(shares, key=lambda each: shares[each])
    clear = shares[cause] >= CLEAR and not (cause is Cause.RATE and state.closed)
    queue = state.harmful_queues[0]
    return Truth(
        cause=cause if clear else Cause.UNCLEAR,
        onset=queue.start,
        first_sign=state.first_limited(LIMITS[cause]),
        until=state.harmful_queues[-1].until,
        share=shares[cause],
        detail=detail,
    )


def limited_share(state: RunState, limit: AdmissionLimit) -> float:
    """Fraction of the harmful queues' time with a queue in which this limit kept it waiting."""
    held = total = 0.0
    for queue in state.harmful_queues:
        queued = float(((state.waiting > SHORT_QUEUE) & state.within(queue.start, queue.until)).sum()) * STEP
        held += queued * state.limit_share(limit, queue.start, queue.until)
        total += queued
    return held / total if total else 0.0
