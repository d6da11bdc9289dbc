"""What one iteration contains: prompts or decodes alone, both fused, or chunked prefill beside decodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from servetop.simulator.scheduling.work import PrefillChunk, Work

if TYPE_CHECKING:
    from servetop.simulator.scheduling.scheduler import Scheduler


class Iteration(Protocol):
    """Plans the next work from the scheduler's queue and batch."""

    def plan(self, engine: Scheduler, now: float) -> Work | None:
        """Return the next work from `now` on; None if there is none."""
        ...


class PrefillFirst:
    """Prompts go first, in iterations of their own, whenever one is admissible (vLLM before chunked prefill)."""

    def plan(self, engine: Scheduler, now: float) -> Work | None:
        """All admissible prompts up to the token budget, else decode steps."""
        chunks = admit_whole(engine, now, budget=engine.limits.max_num_batched_tokens)
        if chunks:
            return engine.mixed_work(chunks, decoding=False)
        if not engine.make_room():
            engine.policy.eviction.restore(engine)
        return engine.decode_work()


class Fused:
    """In-flight batching: whole prompts join the running decodes in one iteration (TensorRT-LLM, Orca)."""

    def plan(self, engine: Scheduler, now: float) -> Work | None:
        """The decode step with all admissible prompts added to it."""
        chunks = []
        if not engine.make_room():
            engine.policy.eviction.restore(engine)
            chunks = admit_whole(engine, now, budget=engine.limits.max_num_batched_tokens - len(engine.batch))
        return engine.mixed_work(chunks, decoding=True) if chunks else engine.decode_work()


class Chunked:
    """Decodes first, then pieces of prompts up to the token budget (vLLM V1, DeepSpeed-FastGen's SplitFuse).

    The blocks of the whole prompt are taken at admission.
    """

    def plan(self, engine: Scheduler, now: float) -> Work | None:
        """Return the decode step filled with prompt chunks, started prompts first."""
        preempted = engine.make_room()
        budget = engine.limits.max_num_batched_tokens - len(engine.batch)
        chunks = []
        for seq in engine.prefilling.values():
            tokens = min(seq.length - seq.computed, budget)
            if tokens > 0:
                chunks.append(PrefillChunk(seq, seq.computed, tokens))
                budget -= tokens
        if not preempted:
            engine.policy.eviction.restore(engine)
            chunks += _admit_pieces(engine, now, budget=budget)
        return engine.mixed_work(chunks, decoding=True) if chunks else engine.decode_work()


def admit_whole(engine: Scheduler, now: float, *, budget: int) -> list[PrefillChunk]:
    """Admit waiting sequences in order while gate, places, blocks and token budget allow.

    A first prompt may exceed the budget, so that a long one cannot block the queue for ever.
    """
    chunks: list[PrefillChunk] = []
    if engine.opens_at() > now:
        return chunks
    while (seq := engine.head()) and (seq.length <= budget or not chunks):
        engine.admit(now)
        chunks.append(PrefillChunk(seq, seq.computed, seq.length - seq.computed))
        budget -= chunks[-1].tokens
    return chunks


def _admit_pieces(engine: Scheduler, now: float, *, budget: int) -> list[PrefillChunk]:
    chunks: list[PrefillChunk] = []
    if engine.opens_at() > now:
        return chunks
    while budget > 0 and (seq := engine.head()):
        engine.admit(now)
        chunks.append(PrefillChunk(seq, seq.computed, min(seq.length - seq.computed, budget)))
        budget -= chunks[-1].tokens
    return chunks
