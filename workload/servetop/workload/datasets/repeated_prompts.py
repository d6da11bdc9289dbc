"""How much of each prompt an infinite prefix cache holds from the prompts before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from servetop.core.interfaces.dialect import Prompt
from servetop.workload.token_estimate import CHARACTERS_PER_TOKEN

Seen = set[int]
"""Hashes of the beginnings of prompts, block by block."""


def found_shares(prompts: Iterable[Prompt], *, block_size: int, seen: Seen) -> Iterator[tuple[float, int]]:
    """Return the part of each prompt that is in `seen`, and its length; adds the prompt to `seen`.

    Whole blocks only, and never the last token. Texts are compared in pieces of as many characters as a block of tokens
    has on average.
    """
    for prompt in prompts:
        whole: Sequence[object] = prompt.text if prompt.token_ids is None else prompt.token_ids
        step = block_size * (CHARACTERS_PER_TOKEN if prompt.token_ids is None else 1)
        known, beginning = 0, 0
        for end in range(step, len(whole) + 1, step):
            beginning = hash((beginning, whole[end - step : end]))
            if beginning in seen and known == end - step and end < len(whole):
                known = end
            seen.add(beginning)
        yield known / max(1, len(whole)), len(whole)
