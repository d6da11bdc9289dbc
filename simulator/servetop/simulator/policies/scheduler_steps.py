"""The steps of a scheduler that policies combine to the work of an iteration."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Protocol

from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.model.work import PrefillChunk, Work


@dataclass(slots=True, kw_only=True)
class Limits:
    """The limits that may change at run time."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int


class SchedulerSteps(Protocol):
    """The state that a policy reads from a scheduler, and the steps that it may request."""

    limits: Limits
    waiting: deque[SimSequence]

    @property
    def batch(self) -> Sized:
        """The sequences that decode."""
        ...

    @property
    def prefilling(self) -> Mapping[int, SimSequence]:
        """The sequences whose prompt is not yet computed, oldest first."""
        ...

    def opens_at(self) -> float:
        """Return when an idle engine may admit the first waiting request; infinity if none is waiting."""
        ...

    def next_admissible(self) -> SimSequence | None:
        """Return the first waiting sequence if it can be admitted now, else None."""
        ...

    def admit(self, now: float) -> SimSequence:
        """Admit the first waiting sequence and allocate its blocks."""
        ...

    def ensure_decode_blocks(self) -> bool:
        """Reserve the blocks of the next decode step, preempting the newest sequences; whether any was preempted."""
        ...

    def resume_preempted(self) -> None:
        """Return preempted sequences to the batch, if the preemption policy keeps any and there is room."""
        ...

    def decode_work(self) -> Work | None:
        """Return the decode steps up to the next finish, block shortage or admission; None for an empty batch."""
        ...

    def mixed_work(self, chunks: list[PrefillChunk], *, decoding: bool) -> Work:
        """Return one iteration of prompt chunks, fused with the running batch if `decoding`."""
        ...

    def swap_out(self, seq: SimSequence, blocks: int) -> None:
        """Move a preempted sequence's blocks to host memory."""
        ...

    def can_swap_in(self) -> bool:
        """Whether the batch has a slot for the oldest swapped sequence, and its blocks plus one more fit."""
        ...

    def swap_in(self) -> None:
        """Return the oldest swapped sequence to the batch."""
        ...
