"""What kept waiting requests out of the batch, and when: the ground truth about an engine's bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from servetop.simulator.scheduling.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class AdmissionState:
    """The queue after a scheduling decision, or an arrival that cannot be admitted; it lasts until the next one."""

    at: float
    limit: AdmissionLimit
    waiting: int
    """Requests outside of the batch, swapped ones included."""
    running: int
    preempted: int
    """Sequences preempted by this decision."""


class AdmissionLimit(StrEnum):
    """Why the first waiting request was not admitted."""

    NONE = "none"
    """Nothing is waiting."""
    BATCH = "batch size"
    """The batch has `max_num_seqs` sequences."""
    KV = "KV blocks"
    """Too few blocks are free for its prompt, or a sequence was just preempted."""
    BUDGET = "token budget"
    """The iteration has its maximum number of tokens: the engine computes as fast as it can."""


def admission_limit(scheduler: Scheduler) -> AdmissionLimit:
    """Return what keeps the first waiting request out, just after a scheduling decision."""
    if not scheduler.waiting and not scheduler.swapped:
        return AdmissionLimit.NONE
    if scheduler.running >= scheduler.limits.max_num_seqs:
        return AdmissionLimit.BATCH
    if scheduler.next_admissible() is None:
        return AdmissionLimit.KV
    return AdmissionLimit.BUDGET


def admission_state(scheduler: Scheduler, at: float) -> AdmissionState:
    """Return the state of the queue just after a scheduling decision at `at`."""
    return AdmissionState(
        at=at,
        limit=admission_limit(scheduler),
        waiting=len(scheduler.waiting) + len(scheduler.swapped),
        running=scheduler.running,
        preempted=len(scheduler.preempted),
    )
