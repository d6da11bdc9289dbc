"""Prefix cache: full prompt blocks by hash, kept after their last use until the space is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from servetop.simulator.model.kv_blocks import BlockManager
from servetop.simulator.model.sim_request import SimSequence


class PrefixCache:
    """Reference counts of shared blocks; unused blocks count as free and are evicted least recently used first.

    A block is shared as soon as its request is admitted (in vLLM: once it is computed), so two equal prompts admitted
    in one iteration already share blocks.
    """

    def __init__(self, blocks: BlockManager) -> None:
        self._blocks = blocks
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self.queried_tokens = 0
        self.hit_tokens = 0

    def match(self, seq: SimSequence) -> int:
        """Count the cached leading blocks of the prompt; at least one token is always left to compute."""
        while len(self._idle) > self._blocks.free:
            self._idle.popitem(last=False)
        limit = min(len(seq.request.prefix), (seq.length - 1) // self._blocks.block_size)
        for hits, block in enumerate(seq.request.prefix[:limit]):
            if block not in self._users and block not in self._idle:
                return hits
        return limit

    def restore(self, prefix: Sequence[int]) -> None:
        """Cache the blocks of a prompt that an earlier run computed; the newest stay if they do not all fit."""
        for block in prefix:
            self._idle[block] = None
            self._idle.move_to_end(block)

    def in_use(self, seq: SimSequence, hits: int) -> int:
        """Count the blocks among the first `hits` that are in use, and so need no free block."""
        return sum(block in self._users for block in seq.request.prefix[:hits])

    def acquire(self, seq: SimSequence, hits: int) -> None:
        """Reference the cached blocks (`hits`), and share the other full blocks of the prompt."""
        prefix = seq.request.prefix
        fresh = tuple(block for block in prefix[hits:] if block not in self._users)
        seq.shared = prefix[:hits] + fresh
        for block in seq.shared:
            self._idle.pop(block, None)
            self._users[block] = self._users.get(block, 0) + 1
        seq.cached_tokens = hits * self._blocks.block_size
        if not seq.preemptions:  # a recomputed sequence finds its own blocks: vLLM counts those apart
            self.queried_tokens += seq.length
            self.hit_tokens += seq.cached_tokens

    def clear(self) -> bool:
        """Forget all blocks; False, and nothing is forgotten, while any block is in use."""
        if self._blocks.used:
            return False
        self._idle.clear()
        return True

    def release(self, seq: SimSequence) -> int:
        """Release the sequence's shared blocks; return how many of them are still in use."""
        in_use = 0
        for block in reversed(seq.shared):
            self._users[block] -= 1
            if self._users[block]:
                in_use += 1
            else:
                del self._users[block]
                self._idle[block] = None
        seq.shared = ()
        return in_use
