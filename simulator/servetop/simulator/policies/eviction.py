"""Preemption policies: recompute the KV of a preempted sequence, or swap it to host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from servetop.simulator.scheduling.sim_request import SimSequence

if TYPE_CHECKING:
    from servetop.simulator.scheduling.scheduler import Scheduler


class Eviction(Protocol):
    """Where a victim goes, and how it comes back."""

    def evict(self, engine: Scheduler, seq: SimSequence, blocks: int, /) -> None:
        """Park a victim that has just given back `blocks` blocks."""
        ...

    def restore(self, engine: Scheduler, /) -> None:
        """Let parked sequences decode again, if there is room."""
        ...


class Recompute:
    """Back to the front of the queue; prompt and generated tokens are prefilled again, which yields the next token."""

    def evict(self, engine: Scheduler, seq: SimSequence, _blocks: int, /) -> None:
        """Put the sequence at the front of the queue."""
        seq.computed = 0
        engine.waiting.appendleft(seq)

    def restore(self, _engine: Scheduler, /) -> None:
        """Nothing to do: admission brings it back."""


class Swap:
    """Blocks go to host memory and come back at PCIe speed, before any new request is admitted."""

    def evict(self, engine: Scheduler, seq: SimSequence, blocks: int, /) -> None:
        """Put it at the front of the swapped queue (victims come newest first: the oldest ends up in front)."""
        if not seq.generated:
            seq.computed = 0
            engine.waiting.appendleft(seq)
            return
        engine.swap_out(seq, blocks)

    def restore(self, engine: Scheduler, /) -> None:
        """Swap in while blocks, one spare block and the watermark fit, and a place is free."""
        while engine.can_swap_in():
            engine.swap_in()
