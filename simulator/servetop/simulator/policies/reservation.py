"""KV block reservation: on demand as a sequence grows, or all blocks at admission."""

from __future__ import annotations

from typing import Protocol

from servetop.simulator.scheduling.kv_blocks import BlockManager
from servetop.simulator.scheduling.sim_request import SimSequence


class MemoryRule(Protocol):
    """Blocks of one sequence, and when a waiting one fits. `grows`: whether decoding takes more blocks."""

    grows: bool
    slack: int

    def at_admission(self, blocks: BlockManager, seq: SimSequence) -> int:
        """Blocks that a sequence takes when it is admitted."""
        ...

    def held(self, blocks: BlockManager, seq: SimSequence, length: int, /) -> int:
        """Blocks that a running sequence of `length` tokens holds between steps."""
        ...

    def fits(self, blocks: BlockManager, need: int) -> bool:
        """Whether `need` blocks may be given to a waiting sequence now."""
        ...

    def ever_fits(self, blocks: BlockManager, seq: SimSequence) -> bool:
        """Whether an empty engine could serve the sequence to its end."""
        ...


class OnDemand:
    """PagedAttention: a block when the length crosses a boundary (vLLM; TensorRT-LLM `max_utilization`).

    Admission leaves `watermark` of all blocks free; a decode step wants `slack` free blocks more than it takes
    (vLLM up to 0.8's V0 scheduler asks for a free block even for a sequence that needs none: slack 1).
    """

    grows = True

    def __init__(self, *, watermark: float = 0.01, slack: int = 1, spare: int = 0) -> None:
        self.watermark = watermark
        self.slack = slack
        self._spare = spare

    def at_admission(self, blocks: BlockManager, seq: SimSequence) -> int:
        """The blocks of the tokens known so far."""
        return blocks.blocks_for(seq.length)

    def held(self, blocks: BlockManager, _seq: SimSequence, length: int, /) -> int:
        """The last sampled token has no slot yet."""
        return blocks.blocks_for(length - 1)

    def fits(self, blocks: BlockManager, need: int) -> bool:
        """Free blocks minus the watermark suffice."""
        return blocks.free - need >= int(self.watermark * blocks.total)

    def ever_fits(self, blocks: BlockManager, seq: SimSequence) -> bool:
        """A preempted sequence must be admissible again at its longest, with `spare` blocks left over."""
        longest = seq.prompt_tokens + seq.request.limit - 1
        return blocks.blocks_for(longest) + self._spare <= blocks.total - int(self.watermark * blocks.total)


class Reserved:
    """All blocks at admission: of prompt and output limit (TensorRT-LLM `guaranteed_no_evict`, TGI), or of a fixed
    maximum of tokens per slot (Orca, FasterTransformer). Never preempts.
    """

    grows = False
    slack = 0

    def __init__(self, *, slot_tokens: int | None = None) -> None:
        self.slot_tokens = slot_tokens

    def at_admission(self, blocks: BlockManager, seq: SimSequence) -> int:
        """The blocks of the longest that the sequence can become."""
        return blocks.blocks_for(self.slot_tokens or seq.prompt_tokens + seq.request.limit - 1)

    def held(self, blocks: BlockManager, seq: SimSequence, _length: int, /) -> int:
        """What was reserved, whatever the length."""
        return self.at_admission(blocks, seq)

    def fits(self, blocks: BlockManager, need: int) -> bool:
        """Free blocks suffice."""
        return blocks.free >= need

    def ever_fits(self, blocks: BlockManager, seq: SimSequence) -> bool:
        """The reservation is not larger than the cache, nor the sequence than its slot."""
        longest = seq.prompt_tokens + seq.request.limit - 1
        return self.at_admission(blocks, seq) <= blocks.total and longest <= (self.slot_tokens or longest)
