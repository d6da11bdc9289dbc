"""The engine's scheduler: waiting queue, running batch and KV blocks, controlled by the scheduling policy.

A driver calls `plan` at an iteration boundary, lets time pass, and calls `complete` at a later boundary. The
scheduler reads no clock and does no I/O.
"""

from __future__ import annotations

import math
from collections import deque

from servetop.simulator.model.cost import CostModel
from servetop.simulator.model.kv_blocks import BlockManager
from servetop.simulator.model.sim_request import SimSequence
from servetop.simulator.model.work import PrefillChunk, Work
from servetop.simulator.policies.policy import Policy
from servetop.simulator.policies.scheduler_steps import Limits
from servetop.simulator.scheduling.batch import RunningBatch
from servetop.simulator.scheduling.prefix_cache import PrefixCache


class Scheduler:
    """First come, first served; `waiting`, `swapped`, `prefilling` and `batch` hold each unfinished sequence once."""

    def __init__(
        self,
        policy: Policy,
        blocks: BlockManager,
        *,
        cost: CostModel,
        limits: Limits,
        prefix: PrefixCache | None = None,
    ) -> None:
        self.policy = policy
        self.reservation = policy.reservation
        self.blocks = blocks
        self.cost = cost
        self.limits = limits
        self.prefix = prefix
        self.batch = RunningBatch(blocks.block_size)
        self.waiting: deque[SimSequence] = deque()
        self.swapped: deque[SimSequence] = deque()
        self.prefilling: dict[int, SimSequence] = {}
        self.preempted: list[SimSequence] = []
        self.swapped_in: list[SimSequence] = []
        self.preemptions = 0
        self.recomputed_tokens = 0
        self._reserved_blocks = 0
        self._moved_blocks = 0

    @property
    def running(self) -> int:
        """Sequences in the batch, including those still in prefill."""
        return len(self.batch.members) + len(self.prefilling)

    @property
    def unfinished(self) -> int:
        """All sequences inside the engine."""
        return len(self.batch.members) + len(self.prefilling) + len(self.waiting) + len(self.swapped)

    def accepts(self, seq: SimSequence) -> bool:
        """Whether an empty engine could complete this request; otherwise it must be rejected."""
        if seq.prompt_tokens + seq.request.limit > self.limits.max_model_len:
            return False
        return self.reservation.ever_fits(self.blocks, seq)

    def add(self, seq: SimSequence) -> None:
        """Queue a new request."""
        self.waiting.append(seq)

    def abort(self, seq: SimSequence) -> None:
        """Remove an unfinished sequence and free its blocks. Call between iterations only."""
        if seq.index in self.batch.members:
            length = self.batch.length_of(seq)
            self.batch.leave(seq)
            self._release(seq, length)
        elif self.prefilling.pop(seq.index, None):
            self._release(seq, seq.length + 1)
        else:
            queue = self.swapped if seq in self.swapped else self.waiting
            queue.remove(seq)

    def plan(self, now: float) -> Work | None:
        """Return the next work at time `now`; None if there is none before an arrival or `opens_at`."""
        self._reserved_blocks = 0
        self.preempted.clear()
        self.swapped_in.clear()
        return self.policy.iteration.plan(self, now)

    def opens_at(self) -> float:
        """Return when an idle engine may admit the first waiting request; infinity if none is waiting."""
        if not self.waiting:
            return math.inf
        return self.policy.admission.opens_at(self.waiting, running=self.running, limit=self.limits.max_num_seqs)

    def complete(self, work: Work, steps: int, *, now: float) -> list[SimSequence]:
        """Complete the first `steps` iterations of the work, ending at `now`; return the finished sequences."""
        finished: list[SimSequence] = []
        if work.decoding:
            if self.reservation.allocates_on_growth:
                self.blocks.allocate(self.batch.blocks_for_steps(steps))
            finished = self.batch.advance(steps)
        if work.chunks:
            finished += self._complete_chunks(work.chunks, now)
        for seq in finished:
            self._release(seq, seq.length)
            seq.finished_at = now
        return finished

    def next_admissible(self) -> SimSequence | None:
        """Return the first waiting sequence if it can be admitted now, else None."""
        if not self.waiting or self.swapped or self.running >= self.limits.max_num_seqs:
            return None
        seq = self.waiting[0]
        need = self.reservation.at_admission(self.blocks, seq)
        if self.prefix:
            need -= self.prefix.in_use(seq, self.prefix.match(seq))
        return seq if self.reservation.fits(self.blocks, need + self._reserved_blocks) else None

    def admit(self, now: float) -> SimSequence:
        """Admit the first waiting sequence and allocate its blocks; `computed` is set to its cached tokens."""
        seq = self.waiting.popleft()
        need = self.reservation.at_admission(self.blocks, seq)
        if self.prefix:
            hits = self.prefix.match(seq)
            need -= self.prefix.in_use(seq, hits)
            self.prefix.acquire(seq, hits)
            seq.computed = seq.cached_tokens
        self.blocks.allocate(need)
        self.prefilling[seq.index] = seq
        seq.prefilled_at = None
        if seq.scheduled_at is None:
            seq.scheduled_at = now
        if seq.preemptions:
            self.recomputed_tokens += seq.length - seq.computed
        return seq

    def ensure_decode_blocks(self) -> bool:
        """Reserve the blocks of the next decode step, preempting the newest sequences; whether any was preempted."""
        if not self.reservation.allocates_on_growth:
            return False
        while len(self.batch):
            need = self.batch.block_need()
            if self._has_room(need):
                self._reserved_blocks = need
                break
            self._preempt_newest()
        return bool(self.preempted)

    def _has_room(self, need: int) -> bool:
        """Whether each sequence, oldest first, finds its block and `slack` more blocks free.

        The last free block may go to the newest sequence. A sequence that runs alone needs no slack: with slack it
        would be preempted and recomputed for every token.
        """
        if need + self.reservation.slack <= self.blocks.free:
            return True
        if need > self.blocks.free or self.prefilling:
            return False
        return len(self.batch) == 1 or (need == self.blocks.free and self.batch.needs_block(self.batch.newest()))

    def resume_preempted(self) -> None:
        """Return preempted sequences to the batch, if the preemption policy keeps any and there is room."""
        self.policy.preemption.resume(self)

    def decode_work(self) -> Work | None:
        """Return the decode steps up to the next finish, block shortage or admission; None for an empty batch."""
        members = len(self.batch)
        if not members:
            return None
        steps = self.batch.steps_to_finish()
        if (self.preempted or self.swapped_in) and (self.swapped or self.next_admissible()):
            steps = 1  # preemption or swap-in may allow an admission or swap-in at the next boundary
        elif self.reservation.allocates_on_growth:
            room = self.blocks.free - self.reservation.slack
            if (steps // self.blocks.block_size + 1) * members > room:
                steps = min(steps, max(self.batch.steps_within(self.blocks.free, slack=self.reservation.slack), 1))
        return Work(
            first=self.cost.decode(members) + self.batch.context * self.cost.kv_rate,
            steps=steps,
            slope=members * self.cost.kv_rate,
            delay=self._swap_delay(),
            decoding=members,
            admits=self._admits(),
        )

    def mixed_work(self, chunks: list[PrefillChunk], *, decoding: bool) -> Work:
        """Return one iteration of prompt chunks, fused with the running batch if `decoding`."""
        members = len(self.batch) if decoding else 0
        context = self.batch.context if decoding else 0
        first = self.cost.fused(chunks, decoding=members, context=context)
        return Work(first=first, decoding=members, chunks=tuple(chunks), delay=self._swap_delay())

    def swap_out(self, seq: SimSequence, blocks: int) -> None:
        """Move a preempted sequence's blocks to host memory."""
        seq.swapped_blocks = blocks
        self._moved_blocks += blocks
        self.swapped.appendleft(seq)

    def can_swap_in(self) -> bool:
        """Whether the batch has a slot for the oldest swapped sequence, and its blocks plus one more fit."""
        if not self.swapped or self.running >= self.limits.max_num_seqs:
            return False
        return self.reservation.fits(self.blocks, self.swapped[0].swapped_blocks + 1 + self._reserved_blocks)

    def swap_in(self) -> None:
        """Return the oldest swapped sequence to the batch."""
        seq = self.swapped.popleft()
        self.blocks.allocate(seq.swapped_blocks)
        self._moved_blocks += seq.swapped_blocks
        self.batch.join(seq, steps=seq.output_tokens - seq.generated)
        self._reserved_blocks += self.batch.needs_block(seq)
        self.swapped_in.append(seq)

    def _swap_delay(self) -> float:
        moved, self._moved_blocks = self._moved_blocks, 0
        return self.cost.swap(moved, self.blocks.block_size) if moved else 0.0

    def _admits(self) -> bool:
        free_slot = self.running < self.limits.max_num_seqs and not self.policy.admission.pads
        return free_slot and not self.waiting and not self.swapped

    def _complete_chunks(self, chunks: tuple[PrefillChunk, ...], now: float) -> list[SimSequence]:
        prefilled = []
        for chunk in chunks:
            seq = chunk.sequence
            seq.computed += chunk.tokens
            if seq.computed >= seq.length:
                prefilled.append(seq)
        longest = max((seq.output_tokens - seq.generated for seq in prefilled), default=0)
        finished = []
        for seq in prefilled:
            del self.prefilling[seq.index]
            seq.generated += 1
            if seq.first_token_at is None:
                seq.first_token_at = now
            seq.prefilled_at = now
            steps = (longest if self.policy.admission.pads else seq.output_tokens - seq.generated + 1) - 1
            if steps:
                self.batch.join(seq, steps=steps)
            else:
                finished.append(seq)
        return finished

    def _preempt_newest(self) -> None:
        if self.prefilling:
            seq = self.prefilling.pop(next(reversed(self.prefilling)))
            held = self.reservation.at_admission(self.blocks, seq)
        else:
            seq = self.batch.newest()
            held = self.reservation.held(self.blocks, seq, self.batch.length_of(seq))
            self.batch.leave(seq)
        self.blocks.release(held - (self.prefix.release(seq) if self.prefix else 0))
        seq.preemptions += 1
        self.preemptions += 1
        self.preempted.append(seq)
        self.policy.preemption.preempt(self, seq, held)

    def _release(self, seq: SimSequence, length: int) -> None:
        held = self.reservation.held(self.blocks, seq, length)
        self.blocks.release(held - (self.prefix.release(seq) if self.prefix else 0))
