"""What is asked: pure, seeded streams of prompts of a wanted length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.core.wire import Prompt

FIRST_ID, LAST_ID = 10, 255
"""Token ids that every vocabulary has and that are none of its special tokens (those sit at its ends)."""

_WORDS = (
    "the of and to in that it was for on are as with his they at be this have from or one had by word but not what "
    "all were we when your can said there use an each which she do how their if will up other about out many then "
    "them these so some her would make like him into time has look two more write go see number no way could people "
    "my than first water been call who oil its now find long down day did get come made may part"
)
"""Common English words: one token each, their leading space included, in the usual vocabularies."""


class PromptSource(Protocol):
    """A kind of prompts; two iterators of one source give the same prompts."""

    def prompts(self) -> Iterator[Prompt]:
        """Prompts without end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTokenPrompts:
    """Token ids drawn at random: exactly as long as asked, and no two with a prefix in common worth caching."""

    input_len: int
    output_len: int
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        """Prompts with `token_ids` and no text."""
        generator = np.random.default_rng(self.seed)
        while True:
            ids = generator.integers(FIRST_ID, LAST_ID, size=self.input_len, endpoint=True)
            yield Prompt(
                text="",
                token_ids=tuple(ids.tolist()),
                input_tokens=self.input_len,
                output_tokens=self.output_len,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWordPrompts:
    """Common words drawn at random, for wires that take text: as many words as tokens are wanted.

    The length in tokens is an estimate; the server's own count, where it sends one, replaces it.
    """

    input_len: int
    output_len: int
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        """Prompts with text and no `token_ids`."""
        words = _WORDS.split()
        generator = np.random.default_rng(self.seed)
        while True:
            picks = generator.integers(0, len(words), size=self.input_len)
            text = " ".join(words[pick] for pick in picks.tolist())
            yield Prompt(text=text, input_tokens=self.input_len, output_tokens=self.output_len)


def prompts_for(workload: WorkloadConfig, seed: Sequence[int]) -> PromptSource:
    """Token ids for completions, words for chat."""
    kind = RandomWordPrompts if workload.endpoint == "chat" else RandomTokenPrompts
    return kind(input_len=workload.input_len, output_len=workload.output_len, seed=tuple(seed))
