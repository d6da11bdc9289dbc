"""Prefix cache: full prompt blocks found by hash, kept after their last user until the space is wanted."""

from __future__ import annotations

from collections import OrderedDict

from servetop.simulator.scheduling.kv_blocks import BlockManager
from servetop.simulator.scheduling.sim_request import SimSequence


class PrefixCache:
    """Counts users of each shared block; unused ones count as free and are forgotten least recently used first.

    A block is shared from its admission on (vLLM: once it is computed), so two equal prompts admitted in one
    iteration already share.
    """

    def __init__(self, blocks: BlockManager) -> None:
        self._blocks = blocks
        self._users: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self.queried_tokens = 0
        self.hit_tokens = 0

    def match(self, seq: SimSequence) -> int:
        """How many leading prompt blocks are there; never the whole length, as one token must be computed."""
        while len(self._idle) > self._blocks.free:
            self._idle.popitem(last=False)
        most = min(len(seq.request.prefix), (seq.length - 1) // self._blocks.block_size)
        for hits, block in enumerate(seq.request.prefix[:most]):
            if block not in self._users and block not in self._idle:
                return hits
        return most

    def in_use(self, seq: SimSequence, hits: int) -> int:
        """How many of the first `hits` blocks somebody uses now, so that they cost no free block."""
        return sum(block in self._users for block in seq.request.prefix[:hits])

    def acquire(self, seq: SimSequence, hits: int) -> None:
        """Use the hits, and offer the rest of the prompt's full blocks to others."""
        prefix = seq.request.prefix
        fresh = tuple(block for block in prefix[hits:] if block not in self._users)
        seq.shared = prefix[:hits] + fresh
        for block in seq.shared:
            self._idle.pop(block, None)
            self._users[block] = self._users.get(block, 0) + 1
        seq.cached_tokens = hits * self._blocks.block_size
        self.queried_tokens += seq.length
        self.hit_tokens += seq.cached_tokens

    def release(self, seq: SimSequence) -> int:
        """Stop using the sequence's shared blocks; returns how many of them somebody else still uses."""
        still = 0
        for block in reversed(seq.shared):
            self._users[block] -= 1
            if self._users[block]:
                still += 1
            else:
                del self._users[block]
                self._idle[block] = None
        seq.shared = ()
        return still
