"""Prompts of which a warm prefix cache holds a given fraction: whole blocks of a shared prefix, and a unique rest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.prompts.length_sources import LengthPair
from servetop.workload.prompts.lengths import lengths_for
from servetop.workload.prompts.prompt_source import LengthStream, Vocabulary, prefix_picks

USUAL_BLOCK = 16
"""Tokens of a KV block where the engine does not report it."""
_PREFIX, _CHUNK = 0xCA5E, 1024
_MOST_CARRIED = 8
"""Blocks that prompts too short for their part leave to longer ones, at most."""
_LOOKED_AT = 4096
"""Prompts whose lengths decide which rates are possible, and how long the prefixes are that are sent first."""


def shared_blocks(lengths: Iterable[int], *, rate: float, block_size: int) -> Iterator[int]:
    """Return how many leading blocks of each prompt are shared, for prompts of these lengths.

    The rounding error of each prompt is carried over to the next one, so that the mean over any number of prompts is
    right to within half a block in total. An engine computes at least the last token of a prompt.
    """
    carried, most_carried = 0.0, float(_MOST_CARRIED * block_size)
    for length in lengths:
        wanted = rate * length + carried
        blocks = min(max(0, math.floor(wanted / block_size + 0.5)), (length - 1) // block_size)
        carried = min(max(wanted - blocks * block_size, -most_carried), most_carried)
        yield blocks


def check_hit_rate(workload: WorkloadConfig, *, block_size: int = USUAL_BLOCK) -> None:
    """Raise UsageError for a hit rate that the workload cannot have."""
    rate = workload.cache_hit_rate
    if rate is None:
        return
    if not 0 <= rate < 1:
        raise UsageError(f"--cache-hit-rate {rate:g}: give a fraction from 0 to below 1: the last token is computed")
    if workload.dataset != "random" or workload.conversational:
        what = "conversations have" if workload.conversational else f"{workload.dataset} has"
        raise UsageError(f"--cache-hit-rate builds its own prompts, but {what} others: leave out one of the two")
    if workload.prefix_len:
        raise UsageError("--cache-hit-rate sets the length of the shared prefixes: leave out --random-prefix-len")
    if workload.n > 1:
        raise UsageError("--cache-hit-rate is for single completions: leave out --n")
    lengths = [length for length, _ in itertools.islice(lengths_for(workload, (0,)).pairs(), _LOOKED_AT)]
    total, possible = sum(lengths), sum((length - 1) // block_size for length in lengths) * block_size
    if rate * total > possible:
        mean = total / len(lengths)
        raise UsageError(
            f"--cache-hit-rate {rate:g}: prompts of {mean:.4g} tokens in blocks of {block_size} reach at most "
            f"{math.floor(1000 * possible / total) / 1000:g}: the last token is always computed"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRatePrompts:
    """Prompts that begin with whole blocks of one of a number of prefixes."""

    vocabulary: Vocabulary
    lengths: LengthStream
    rate: float
    block_size: int
    num_prefixes: int
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        """Prompts of exactly the drawn lengths."""
        generator, pool = np.random.default_rng(self.seed), _PrefixPool(self.vocabulary, self.seed)
        pairs, own = itertools.tee(self.lengths())
        blocks = shared_blocks((length for length, _ in own), rate=self.rate, block_size=self.block_size)
        for pick, (length, output), shared in zip(
            prefix_picks(self.num_prefixes, self.seed), pairs, blocks, strict=False
        ):
            prefix = pool.pieces(pick, shared * self.block_size)
            pieces = [*prefix, *self.vocabulary.draw(generator, length - len(prefix))]
            yield self.vocabulary.prompt(pieces, output)

    def prefixes(self) -> list[list[int]]:
        """Return the pieces of each prefix, as long as the first thousands of prompts need it."""
        pool, first = _PrefixPool(self.vocabulary, self.seed), itertools.islice(self.lengths(), _LOOKED_AT)
        blocks = shared_blocks((length for length, _ in first), rate=self.rate, block_size=self.block_size)
        longest = max(blocks) * self.block_size
        return [pool.pieces(number, longest) for number in range(self.num_prefixes)] if longest else []


def shared_tokens(
    workload: WorkloadConfig, pairs: Iterator[LengthPair], *, block_size: int
) -> Iterator[tuple[LengthPair, int]]:
    """Return the lengths of each prompt of a workload with a hit rate, and how many of its tokens are shared."""
    pairs, own = itertools.tee(pairs)
    rate = workload.cache_hit_rate or 0.0
    blocks = shared_blocks((length for length, _ in own), rate=rate, block_size=block_size)
    return ((pair, shared * block_size) for pair, shared in zip(pairs, blocks, strict=False))


class _PrefixPool:
    """Prefixes that are drawn as far as they are needed; a shorter one is the beginning of a longer one."""

    def __init__(self, vocabulary: Vocabulary, seed: Sequence[int]) -> None:
        self._vocabulary = vocabulary
        self._seed = seed
        self._drawn: dict[int, tuple[np.random.Generator, list[int]]] = {}

    def pieces(self, number: int, length: int) -> list[int]:
        if number not in self._drawn:
            self._drawn[number] = np.random.default_rng((*self._seed, _PREFIX, number)), []
        generator, drawn = self._drawn[number]
        while len(drawn) < length:
            drawn += self._vocabulary.draw(generator, _CHUNK)
        return drawn[:length]
