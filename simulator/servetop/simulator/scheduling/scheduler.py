"""The engine's scheduler: the queue, the running batch and the KV blocks; policies decide.

A driver calls `plan` at an iteration boundary, lets time pass, and calls `complete` at a later boundary. Nothing
here reads a clock or does I/O.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from servetop.simulator.model.cost import CostModel
from servetop.simulator.policies.policy import Policy
from servetop.simulator.scheduling.batch import RunningBatch
from servetop.simulator.scheduling.kv_blocks import BlockManager
from servetop.simulator.scheduling.prefix_cache import PrefixCache
from servetop.simulator.scheduling.sim_request import SimSequence
from servetop.simulator.scheduling.work import PrefillChunk, Work


@dataclass(slots=True, kw_only=True)
class Limits:
    """The limits that may change at run time."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int


class Scheduler:
    """FCFS. `waiting`, `swapped`, `prefilling` and `batch` hold every unfinished sequence exactly once."""

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
        self.memory = policy.memory
        self.blocks = blocks
        self.cost = cost
        self.limits = limits
        self.prefix = prefix
        self.batch = RunningBatch(blocks.block_size)
        self.waiting: deque[SimSequence] = deque()
        self.swapped: deque[SimSequence] = deque()
        self.prefilling: dict[int, SimSequence] = {}
        self.victims: list[SimSequence] = []
        self.returned: list[SimSequence] = []
        self.preemptions = 0
        self.recomputed_tokens = 0
        self._pledged = 0
        self._moved_blocks = 0

    @property
    def running(self) -> int:
        """Sequences in the batch, those still in prefill included."""
        return len(self.batch) + len(self.prefilling)

    @property
    def unfinished(self) -> int:
        """All sequences inside the engine."""
        return self.running + len(self.waiting) + len(self.swapped)

    def accepts(self, seq: SimSequence) -> bool:
        """Whether an empty engine can serve this request to its end; otherwise it must be rejected."""
        if seq.prompt_tokens + seq.request.limit > self.limits.max_model_len:
            return False
        return self.memory.ever_fits(self.blocks, seq)

    def add(self, seq: SimSequence) -> None:
        """Queue a new request."""
        self.waiting.append(seq)

    def abort(self, seq: SimSequence) -> None:
        """Drop a sequence wherever it is; its blocks are free at once. Call between iterations only."""
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
        """Return the work from `now` on; None if there is none before an arrival or `opens_at`."""
        self._pledged = 0
        self.victims.clear()
        self.returned.clear()
        return self.policy.iteration.plan(self, now)

    def opens_at(self) -> float:
        """When admission opens for the queue of an idle engine; infinity if the queue is empty."""
        if not self.waiting:
            return math.inf
        return self.policy.gate.opens_at(self.waiting, running=self.running, limit=self.limits.max_num_seqs)

    def complete(self, work: Work, steps: int, *, now: float) -> list[SimSequence]:
        """Complete the first `steps` iterations of the work, which end at `now`; return the finished sequences."""
        finished: list[SimSequence] = []
        if work.decoding:
            if self.memory.grows:
                self.blocks.take(self.batch.blocks_for_steps(steps))
            finished = self.batch.advance(steps)
        if work.chunks:
            finished += self._complete_chunks(work.chunks, now)
        for seq in finished:
            self._release(seq, seq.length)
            seq.finished_at = now
        return finished

    def head(self) -> SimSequence | None:
        """Return the waiting sequence that can be admitted now."""
        if not self.waiting or self.swapped or self.running >= self.limits.max_num_seqs:
            return None
        seq = self.waiting[0]
        need = self.memory.at_admission(self.blocks, seq)
        if self.prefix:
            need -= self.prefix.in_use(seq, self.prefix.match(seq))
        return seq if self.memory.fits(self.blocks, need + self._pledged) else None

    def admit(self, now: float) -> SimSequence:
        """Give the queue's head its blocks (see `head`); its first uncomputed token is `computed`."""
        seq = self.waiting.popleft()
        need = self.memory.at_admission(self.blocks, seq)
        if self.prefix:
            hits = self.prefix.match(seq)
            need -= self.prefix.in_use(seq, hits)
            self.prefix.acquire(seq, hits)
            seq.computed = seq.cached_tokens
        self.blocks.take(need)
        self.prefilling[seq.index] = seq
        seq.prefilled_at = None
        if seq.scheduled_at is None:
            seq.scheduled_at = now
        if seq.preemptions:
            self.recomputed_tokens += seq.length - seq.computed
        return seq

    def make_room(self) -> bool:
        """Preempt the newest until the next decode step has its blocks, and pledge them; whether that took a victim."""
        if not self.memory.grows:
            return False
        while len(self.batch):
            need = self.batch.block_need()
            if self._has_room(need):
                self._pledged = need
                break
            self._preempt_newest()
        return bool(self.victims)

    def _has_room(self, need: int) -> bool:
        """Every sequence, oldest first, wants its block and `slack` more to be free when its turn comes.

        So the last block may go to the newest. A sequence that is alone is content with its own block: the engines
        would preempt it, and have it compute everything again, for each of its tokens.
        """
        if need + self.memory.slack <= self.blocks.free:
            return True
        if need > self.blocks.free or self.prefilling:
            return False
        return len(self.batch) == 1 or (need == self.blocks.free and self.batch.needs_block(self.batch.newest()))

    def decode_work(self) -> Work | None:
        """As many decode steps as are sure to be equal: up to a finish, a shortage or a changed queue."""
        members = len(self.batch)
        if not members:
            return None
        steps = self.batch.steps_to_finish()
        if (self.victims or self.returned) and (self.swapped or self.head()):
            steps = 1  # what was moved may let another one in, or back in, at the next boundary
        elif self.memory.grows:
            room = self.blocks.free - self.memory.slack
            if (steps // self.blocks.block_size + 1) * members > room:
                steps = min(steps, max(self.batch.steps_within(self.blocks.free, slack=self.memory.slack), 1))
        return Work(
            first=self.cost.decode(members) + self.batch.context * self.cost.kv_rate,
            steps=steps,
            slope=members * self.cost.kv_rate,
            delay=self._swap_delay(),
            decoding=members,
            admits=self._admits(),
        )

    def mixed_work(self, chunks: list[PrefillChunk], *, decoding: bool) -> Work:
        """One iteration of prompt pieces, with the running batch if `decoding`."""
        members = len(self.batch) if decoding else 0
        context = self.batch.context if decoding else 0
        first = self.cost.fused(chunks, decoding=members, context=context)
        return Work(first=first, decoding=members, chunks=tuple(chunks), delay=self._swap_delay())

    def swap_out(self, seq: SimSequence, blocks: int) -> None:
        """Park a victim's blocks in host memory."""
        seq.swapped_blocks = blocks
        self._moved_blocks += blocks
        self.swapped.appendleft(seq)

    def can_swap_in(self) -> bool:
        """Whether the oldest swapped sequence has a place, its blocks, and one more to go on with."""
        if not self.swapped or self.running >= self.limits.max_num_seqs:
            return False
        return self.memory.fits(self.blocks, self.swapped[0].swapped_blocks + 1 + self._pledged)

    def swap_in(self) -> None:
        """Bring the oldest swapped sequence back into the batch."""
        seq = self.swapped.popleft()
        self.blocks.take(seq.swapped_blocks)
        self._moved_blocks += seq.swapped_blocks
        self.batch.join(seq, steps=seq.output_tokens - seq.generated)
        self._pledged += self.batch.needs_block(seq)
        self.returned.append(seq)

    def _swap_delay(self) -> float:
        moved, self._moved_blocks = self._moved_blocks, 0
        return self.cost.swap(moved, self.blocks.block_size) if moved else 0.0

    def _admits(self) -> bool:
        free_place = self.running < self.limits.max_num_seqs and not self.policy.gate.pads
        return free_place and not self.waiting and not self.swapped

    def _complete_chunks(self, chunks: tuple[PrefillChunk, ...], now: float) -> list[SimSequence]:
        done = []
        for chunk in chunks:
            seq = chunk.sequence
            seq.computed += chunk.tokens
            if seq.computed >= seq.length:
                done.append(seq)
        longest = max((seq.output_tokens - seq.generated for seq in done), default=0)
        finished = []
        for seq in done:
            del self.prefilling[seq.index]
            seq.generated += 1
            if seq.first_token_at is None:
                seq.first_token_at = now
            seq.prefilled_at = now
            steps = (longest if self.policy.gate.pads else seq.output_tokens - seq.generated + 1) - 1
            if steps:
                self.batch.join(seq, steps=steps)
            else:
                finished.append(seq)
        return finished

    def _preempt_newest(self) -> None:
        if self.prefilling:
            seq = self.prefilling.pop(next(reversed(self.prefilling)))
            held = self.memory.at_admission(self.blocks, seq)
        else:
            seq = self.batch.newest()
            held = self.memory.held(self.blocks, seq, self.batch.length_of(seq))
            self.batch.leave(seq)
        self.blocks.give_back(held - (self.prefix.release(seq) if self.prefix else 0))
        seq.preemptions += 1
        self.preemptions += 1
        self.victims.append(seq)
        self.policy.eviction.evict(self, seq, held)

    def _release(self, seq: SimSequence, length: int) -> None:
        held = self.memory.held(self.blocks, seq, length)
        self.blocks.give_back(held - (self.prefix.release(seq) if self.prefix else 0))
