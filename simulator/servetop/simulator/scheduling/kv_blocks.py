"""The paged KV cache as a count of interchangeable blocks; only shared prompt blocks have ids (prefix_cache.py)."""

from __future__ import annotations


class BlockManager:
    """`total` blocks of `block_size` tokens. A count in use outside 0..total would be a bug, and raises."""

    __slots__ = ("block_size", "peak", "total", "used")

    def __init__(self, total: int, *, block_size: int) -> None:
        self.total = total
        self.block_size = block_size
        self.used = 0
        self.peak = 0

    @property
    def free(self) -> int:
        """Blocks that a sequence may take now."""
        return self.total - self.used

    @property
    def usage(self) -> float:
        """Share of the blocks in use, 0..1."""
        return self.used / self.total

    def blocks_for(self, tokens: int) -> int:
        """Return the number of blocks for `tokens` tokens."""
        return -(-tokens // self.block_size)

    def take(self, blocks: int) -> None:
        """Allocate `count` blocks."""
        self.used += blocks
        if self.used > self.total:
            raise RuntimeError(f"took {blocks} KV blocks, {self.total - self.used + blocks} were free")
        self.peak = max(self.peak, self.used)

    def give_back(self, blocks: int) -> None:
        """Free `count` blocks."""
        self.used -= blocks
        if self.used < 0:
            raise RuntimeError(f"gave back {blocks} KV blocks, {self.used + blocks} were in use")
