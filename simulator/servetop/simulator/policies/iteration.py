"""Contents of one iteration: prefills or decodes alone, both fused, or chunked prefill beside decodes."""

from __future__ import annotations

from typing import Protocol

from servetop.simulator.model.work import PrefillChunk, Work
from servetop.simulator.policies.scheduler_steps import SchedulerSteps


class IterationPlanner(Protocol):
    """Plans the next work from the waiting queue and the running batch."""

    def plan(self, scheduler: SchedulerSteps, now: float) -> Work | None:
        """Return the next work at time `now`; None if there is none."""
        ...


class PrefillFirst:
    """Prefills run first, in separate iterations, whenever a prompt is admissible (vLLM before chunked prefill)."""

    def plan(self, scheduler: SchedulerSteps, now: float) -> Work | None:
        """Return the prefill of all admissible prompts within the token budget, else decode steps."""
        chunks = _admit_prompts(scheduler, now, budget=scheduler.limits.max_num_batched_tokens)
        if chunks:
            return scheduler.mixed_work(chunks, decoding=False)
        if not scheduler.ensure_decode_blocks():
            scheduler.resume_preempted()
        return scheduler.decode_work()


class FusedPrefill:
    """In-flight batching: whole prompts join the running decodes in one iteration (TensorRT-LLM, Orca)."""

    def plan(self, scheduler: SchedulerSteps, now: float) -> Work | None:
        """Return the decode step, fused with all admissible prompts."""
        chunks = []
        if not scheduler.ensure_decode_blocks():
            scheduler.resume_preempted()
            chunks = _admit_prompts(
                scheduler, now, budget=scheduler.limits.max_num_batched_tokens - len(scheduler.batch)
            )
        return scheduler.mixed_work(chunks, decoding=True) if chunks else scheduler.decode_work()


class ChunkedPrefill:
    """Decodes first, then prompt chunks up to the token budget (vLLM V1, DeepSpeed-FastGen's SplitFuse).

    The blocks of the whole prompt are allocated at admission.
    """

    def plan(self, scheduler: SchedulerSteps, now: float) -> Work | None:
        """Return the decode step filled up with prompt chunks, partially prefilled prompts first."""
        preempted = scheduler.ensure_decode_blocks()
        budget = scheduler.limits.max_num_batched_tokens - len(scheduler.batch)
        chunks = []
        for seq in scheduler.prefilling.values():
            tokens = min(seq.length - seq.computed, budget)
            if tokens > 0:
                chunks.append(PrefillChunk(seq, seq.computed, tokens))
                budget -= tokens
        if not preempted:
            scheduler.resume_preempted()
            chunks += _admit_chunks(scheduler, now, budget=budget)
        return scheduler.mixed_work(chunks, decoding=True) if chunks else scheduler.decode_work()


def _admit_prompts(scheduler: SchedulerSteps, now: float, *, budget: int) -> list[PrefillChunk]:
    """Admit waiting sequences in order while admission policy, batch size, blocks and token budget allow.

    The first prompt may exceed the budget, so that a long one cannot block the queue forever.
    """
    chunks: list[PrefillChunk] = []
    if scheduler.opens_at() > now:
        return chunks
    while (seq := scheduler.next_admissible()) and (seq.length <= budget or not chunks):
        scheduler.admit(now)
        chunks.append(PrefillChunk(seq, seq.computed, seq.length - seq.computed))
        budget -= chunks[-1].tokens
    return chunks


def _admit_chunks(scheduler: SchedulerSteps, now: float, *, budget: int) -> list[PrefillChunk]:
    chunks: list[PrefillChunk] = []
    if scheduler.opens_at() > now:
        return chunks
    while budget > 0 and (seq := scheduler.next_admissible()):
        scheduler.admit(now)
        chunks.append(PrefillChunk(seq, seq.computed, min(seq.length - seq.computed, budget)))
        budget -= chunks[-1].tokens
    return chunks
