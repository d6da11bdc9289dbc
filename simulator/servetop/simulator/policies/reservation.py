"""KV block reservation policies: on demand as a sequence grows, or all blocks at admission."""

from __future__ import annotations

from typing import Protocol

from servetop.simulator.model.kv_blocks import BlockManager
from servetop.simulator.model.sim_request import SimSequence


class ReservationPolicy(Protocol):
    """Decides how many blocks a sequence holds, and whether a waiting one fits."""

    allocates_on_growth: bool
    """Whether decoding allocates more blocks."""
    slack: int
    """Free blocks that a decode step requires in addition to those that it allocates."""

    def at_admission(self, blocks: BlockManager, seq: SimSequence) -> int:
        """Return the blocks that a sequence is given when it is admitted."""
        ...

    def held(self, blocks: BlockManager, seq: SimSequence, length: int, /) -> int:
        """Return the blocks that a running sequence of `length` tokens holds between steps."""
        ...

    def fits(self, blocks: BlockManager, need: int) -> bool:
        """Whether `need` blocks may be given to a waiting sequence now."""
        ...

    def ever_fits(self, blocks: BlockManager, seq: SimSequence) -> bool:
        """Whether an empty engine could serve the sequence to its end."""
        ...


class OnDemand:
    """PagedAttention: one block whenever the length crosses a block boundary (vLLM; TensorRT-LLM `max_utilization`).

    Admission leaves the fraction `watermark` of all blocks free; a decode step requires `slack` free blocks more than
    it allocates (vLLM's V0 scheduler, up to 0.8, requires a free block even for a sequence that needs none: slack 1).
    """

    allocates_on_growth = True

    def __init__(self, *, watermark: float = 0.01, slack: int = 1, spare: int = 0) -> None:
        self.watermark = watermark
        self.slack = slack
        self._spare = spare

    def at_admission(self, blocks: BlockManager, seq: SimSequence) -> int:
        """Return the blocks of the current length."""
        return blocks.blocks_for(seq.length)

    def held(self, blocks: BlockManager, _seq: SimSequence, length: int, /) -> int:
        """Return the blocks of all tokens except the last sampled one, which has no KV slot yet."""
        return blocks.blocks_for(length - 1)

    def fits(self, blocks: BlockManager, need: int) -> bool:
        """Whether the free blocks above the watermark suffice."""
        return blocks.free - need >= int(self.watermark * blocks.total)

    def ever_fits(self, blocks: BlockManager, seq: SimSequence) -> bool:
        """Whether a preempted sequence of maximum length could be admitted again, with `spare` blocks left over."""
        longest = seq.prompt_tokens + seq.request.limit - 1
        return blocks.blocks_for(longest) + self._spare <= blocks.total - int(self.watermark * blocks.total)


class Reserved:
    """All blocks at admission, so nothing is ever preempted.

    Either for the prompt and the output limit (TensorRT-LLM `guaranteed_no_evict`, TGI), or for a fixed number of
    tokens per slot (Orca, FasterTransformer).
    """

    allocates_on_growth = False
    slack = 0

    def __init__(self, *, slot_tokens: int | None = None) -> None:
        self.slot_tokens = slot_tokens

    def at_admission(self, blocks: BlockManager, seq: SimSequence) -> int:
        """Return the blocks of the sequence's maximum length, or of its slot."""
        return blocks.blocks_for(self.slot_tokens or seq.prompt_tokens + seq.request.limit - 1)

    def held(self, blocks: BlockManager, seq: SimSequence, _length: int, /) -> int:
        """Return the reserved blocks, independent of the length."""
        return self.at_admission(blocks, seq)

    def fits(self, blocks: BlockManager, need: int) -> bool:
        """Whether the free blocks suffice."""
        return blocks.free >= need

    def ever_fits(self, blocks: BlockManager, seq: SimSequence) -> bool:
        """Whether the cache can hold the reservation, and the slot the sequence."""
        longest = seq.prompt_tokens + seq.request.limit - 1
        return self.at_admission(blocks, seq) <= blocks.total and longest <= (self.slot_tokens or longest)
