"""The paged KV cache as a count of interchangeable blocks; only the prefix cache identifies blocks, by hash."""

from __future__ import annotations


class BlockManager:
    """Block manager of `total` KV blocks of `block_size` tokens; RuntimeError if the used count leaves lost..total."""

    __slots__ = ("block_size", "lost", "peak", "total", "used")

    def __init__(self, total: int, *, block_size: int) -> None:
        self.total = total
        self.block_size = block_size
        self.used = 0
        self.peak = 0
        self.lost = 0
        """Used blocks that are never freed."""

    @property
    def free(self) -> int:
        """Blocks that are not in use."""
        return self.total - self.used

    @property
    def usage(self) -> float:
        """Fraction of the blocks in use, 0..1."""
        return self.used / self.total

    def blocks_for(self, tokens: int) -> int:
        """Return the number of blocks for `tokens` tokens."""
        return -(-tokens // self.block_size)

    def allocate(self, blocks: int) -> None:
        """Allocate `blocks` blocks."""
        self.used += blocks
        if self.used > self.total:
            raise RuntimeError(f"allocated {blocks} KV blocks, but {self.total - self.used + blocks} were free")
        self.peak = max(self.peak, self.used)

    def lose(self, blocks: int) -> int:
        """Take up to `blocks` free blocks out of use for good; return how many there were."""
        found = min(blocks, self.free)
        self.allocate(found)
        self.lost += found
        return found

    def release(self, blocks: int) -> None:
        """Free `blocks` blocks."""
        self.used -= blocks
        if self.used < self.lost:
            raise RuntimeError(f"released {blocks} KV blocks, but {self.used + blocks - self.lost} were in use")
