"""Preemption policies: recompute the KV of a preempted sequence, or swap it to host memory."""

from __future__ import annotations

from typing import Protocol

from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.policies.scheduler_steps import SchedulerSteps


class PreemptionMode(Protocol):
    """Where a preempted sequence goes, and how it resumes."""

    def preempt(self, scheduler: SchedulerSteps, seq: SimSequence, blocks: int, /) -> None:
        """Queue a preempted sequence that has just released `blocks` blocks."""
        ...

    def resume(self, scheduler: SchedulerSteps, /) -> None:
        """Return preempted sequences to the batch, if there is room."""
        ...


class Recompute:
    """Preemption by recomputation: prompt and generated tokens are prefilled again, which yields the next token."""

    def preempt(self, scheduler: SchedulerSteps, seq: SimSequence, _blocks: int, /) -> None:
        """Put the sequence at the front of the waiting queue."""
        seq.computed = 0
        scheduler.waiting.appendleft(seq)

    def resume(self, _scheduler: SchedulerSteps, /) -> None:
        """Do nothing: preempted sequences are admitted again like new ones."""


class Swap:
    """Preemption by swapping: blocks move to host memory, and back before any new request is admitted."""

    def preempt(self, scheduler: SchedulerSteps, seq: SimSequence, blocks: int, /) -> None:
        """Put the sequence at the front of the swapped queue, or of the waiting queue if it has no output yet.

        The newest sequence is preempted first, so the oldest ends up at the front.
        """
        if not seq.generated:
            seq.computed = 0
            scheduler.waiting.appendleft(seq)
            return
        scheduler.swap_out(seq, blocks)

    def resume(self, scheduler: SchedulerSteps, /) -> None:
        """Swap in while the batch has a free slot and the blocks fit, with one spare block and the watermark."""
        while scheduler.can_swap_in():
            scheduler.swap_in()
