"""What an infinite prefix cache would find of the prompts of a workload, by arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.config import AS_IS, RunConfig
from servetop.core.events import StageChange


@dataclass(frozen=True, slots=True)
class HitCount:
    """Prompt tokens looked up in a cache, and those of them found; sums of stages are those of the run."""

    found: float
    looked_up: float

    @property
    def rate(self) -> float:
        """Found / looked up; NaN if nothing was looked up."""
        return self.found / self.looked_up if self.looked_up > 0 else math.nan

    def __add__(self, other: HitCount) -> HitCount:
        return HitCount(self.found + other.found, self.looked_up + other.looked_up)


def hits_of_prefixes(prompt_tokens: FloatArray, *, prefix_tokens: int, first_uses: float, block_size: int) -> HitCount:
    """Hits of prompts that each begin with one of some prefixes, whose first uses find nothing.

    Only whole blocks are found, and at least the last token of a prompt is computed.
    """
    shared = whole_blocks(np.minimum(prefix_tokens, prompt_tokens - 1), block_size=block_size)
    mean = float(shared.mean()) if shared.size else 0.0
    return HitCount(float(shared.sum()) - min(first_uses, shared.size) * mean, float(prompt_tokens.sum()))


def hits_of_conversations(
    conversations: FloatArray,
    prompt_tokens: FloatArray,
    output_tokens: FloatArray,
    *,
    prefix_tokens: int,
    block_size: int,
) -> HitCount:
    """Hits of the turns of conversations, in order of conversation and turn.

    A turn finds the prompt and the completion of the turn before it, except the last token, which was never computed;
    a first turn finds a shared prefix.
    """
    before = prompt_tokens[:-1] + output_tokens[:-1] - 1
    continued = conversations[1:] == conversations[:-1]
    known = np.concatenate([[prefix_tokens], np.where(continued, before, prefix_tokens)])
    found = whole_blocks(np.minimum(known, prompt_tokens - 1), block_size=block_size)
    return HitCount(float(found.sum()), float(prompt_tokens.sum()))


def whole_blocks(tokens: FloatArray, *, block_size: int) -> FloatArray:
    """Tokens in whole blocks."""
    return np.asarray(np.maximum(tokens, 0.0) // block_size * block_size)


def own_draws(stages: Sequence[StageChange]) -> Mapping[int, int]:
    """Return what identifies the prompt streams of the stages that have one of their own, by number of the stage."""
    return {stage.index: stage.draws for stage in stages if stage.draws is not None}


def cold_stages(stages: Sequence[StageChange], config: RunConfig) -> Set[int]:
    """Return the numbers of the stages before which the cache was emptied: each cell of a sweep, or the first load."""
    loads = [stage.index for stage in stages if not stage.warmup] if config.prefix_cache != AS_IS else []
    return frozenset(loads if config.drain_at_stages else loads[:1])
