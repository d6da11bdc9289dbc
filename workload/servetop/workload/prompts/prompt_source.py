"""What is asked: pure, seeded streams of prompts of a wanted length."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from servetop.core.interfaces.dialect import Prompt
from servetop.workload.datasets.rows import DatasetRow
from servetop.workload.prompts.length_sources import LengthPair
from servetop.workload.prompts.token_estimate import CHARACTERS_PER_TOKEN, estimated_tokens

FIRST_ID, LAST_ID = 10, 255
"""Token ids that every vocabulary has and that are none of its special tokens (those sit at its ends)."""
_PREFIX, _BLOCK_OF_TRACE = 0x9F1, 0xB10C
_PICKS = 64
"""Prefixes are picked in blocks."""

_WORDS = (
    "the of and to in that it was for on are as with his they at be this have from or one had by word but not what "
    "all were we when your can said there use an each which she do how their if will up other about out many then "
    "them these so some her would make like him into time has look two more write go see number no way could people "
    "my than first water been call who oil its now find long down day did get come made may part"
)
"""Common English words: one token each, their leading space included, in the usual vocabularies."""

LengthStream = Callable[[], Iterator[LengthPair]]
"""A fresh stream of lengths, the same at each call."""
Rows = Callable[[], Iterator[DatasetRow]]
"""A fresh pass over a dataset's rows, without end."""


class PromptSource(Protocol):
    """A kind of prompts; two iterators of one source give the same prompts."""

    def prompts(self) -> Iterator[Prompt]:
        """Prompts without end."""
        ...


class Vocabulary(Protocol):
    """Pieces of one token each, and the prompt that they make."""

    def draw(self, generator: np.random.Generator, count: int) -> list[int]:
        """So many pieces at random."""
        ...

    def prompt(self, pieces: Sequence[int], output_tokens: int) -> Prompt:
        """A prompt of these pieces."""
        ...


class TokenIds:
    """Token ids, for wires that take them: a prompt is exactly as long as asked."""

    def draw(self, generator: np.random.Generator, count: int) -> list[int]:
        """See Vocabulary."""
        ids: list[int] = generator.integers(FIRST_ID, LAST_ID, size=count, endpoint=True).tolist()
        return ids

    def prompt(self, pieces: Sequence[int], output_tokens: int) -> Prompt:
        """See Vocabulary; it has `token_ids` and no text."""
        return Prompt(text="", token_ids=tuple(pieces), input_tokens=len(pieces), output_tokens=output_tokens)


class CommonWords:
    """Words, for wires that take text: as many as tokens are wanted.

    The length in tokens is an estimate; the server's own count, where it sends one, replaces it.
    """

    def __init__(self) -> None:
        self._words = _WORDS.split()

    def draw(self, generator: np.random.Generator, count: int) -> list[int]:
        """See Vocabulary."""
        picks: list[int] = generator.integers(0, len(self._words), size=count).tolist()
        return picks

    def prompt(self, pieces: Sequence[int], output_tokens: int) -> Prompt:
        """See Vocabulary; it has text and no `token_ids`."""
        text = " ".join(self._words[piece] for piece in pieces)
        return Prompt(text=text, input_tokens=len(pieces), output_tokens=output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrefixes:
    """A pool of prefixes; each request draws one of them, so that an engine's prefix cache has something to find."""

    vocabulary: Vocabulary
    length: int = 0
    """Tokens; 0 is no prefix."""
    count: int = 1
    seed: tuple[int, ...] = ()

    def pieces(self) -> Iterator[list[int]]:
        """The pieces of each request's prefix, without end; empty ones where prompts share none."""
        if not self.length:
            yield from itertools.repeat([])
        for number in prefix_picks(self.count, self.seed):
            yield self.vocabulary.draw(np.random.default_rng((*self.seed, _PREFIX, number)), self.length)


def prefix_picks(count: int, seed: tuple[int, ...]) -> Iterator[int]:
    """Which of `count` prefixes each request has, without end."""
    generator = np.random.default_rng((*seed, _PREFIX))
    while True:
        yield from generator.integers(0, count, size=_PICKS).tolist()


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomPrompts:
    """Pieces drawn at random: no two prompts have a beginning in common, apart from a shared prefix."""

    vocabulary: Vocabulary
    lengths: LengthStream
    prefixes: SharedPrefixes
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        """See PromptSource; the prefix comes on top of the length."""
        generator = np.random.default_rng(self.seed)
        for prefix, (length, output) in zip(self.prefixes.pieces(), self.lengths(), strict=False):
            pieces = prefix + self.vocabulary.draw(generator, length)
            yield self.vocabulary.prompt(pieces, output)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePrompts:
    """Random pieces of a trace's lengths; its blocks of one name hold the same pieces wherever they stand."""

    rows: Rows
    vocabulary: Vocabulary
    prefixes: SharedPrefixes
    block_tokens: int
    seed: tuple[int, ...]
    lengths: LengthStream | None = None
    """Instead of the trace's own."""

    def prompts(self) -> Iterator[Prompt]:
        """See PromptSource."""
        generator = np.random.default_rng(self.seed)
        lengths = None if self.lengths is None else self.lengths()
        for row, prefix in zip(self.rows(), self.prefixes.pieces(), strict=False):
            wanted, output = (row.input_tokens or 1, row.output_tokens or 1) if lengths is None else next(lengths)
            pieces = [*prefix]
            until = len(pieces) + wanted
            for block in row.blocks:
                if (left := until - len(pieces)) <= 0:
                    break
                block_seed = (*self.seed, _BLOCK_OF_TRACE, block)
                pieces += self.vocabulary.draw(np.random.default_rng(block_seed), self.block_tokens)[:left]
            pieces += self.vocabulary.draw(generator, until - len(pieces))
            yield self.vocabulary.prompt(pieces, output)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPrompts:
    """The texts of a dataset, in its order; answers as long as it says, else as the lengths say."""

    rows: Rows
    lengths: LengthStream
    own_lengths: bool = True
    """Where the dataset says how long an answer is, that counts."""

    def prompts(self) -> Iterator[Prompt]:
        """See PromptSource; the length of a text is an estimate."""
        for row, (_, output) in zip(self.rows(), self.lengths(), strict=False):
            own = row.output_tokens if self.own_lengths else None
            text = row.text or ""
            yield Prompt(text=text, input_tokens=estimated_tokens(text), output_tokens=own or output)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPrompts:
    """Passages of one text, each from a line chosen at random, around the end to its beginning.

    With `ids`, the text's tokens as the engine counts them, a passage is exactly as long as asked; else four
    characters stand for a token. A shared prefix is the passage from the beginning of one of its first lines.
    """

    text: str
    ids: tuple[int, ...] = ()
    lengths: LengthStream
    prefix_len: int = 0
    num_prefixes: int = 1
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        """See PromptSource."""
        generator = np.random.default_rng(self.seed)
        starts = self._starts()
        for length, output in self.lengths():
            prefix = starts[int(generator.integers(0, min(self.num_prefixes, len(starts))))]
            start = starts[int(generator.integers(0, len(starts)))]
            yield self._prompt(((prefix, self.prefix_len), (start, length)), output)

    def _starts(self) -> list[int]:
        """Where a passage may begin: at lines, or at every 16th token."""
        if self.ids:
            return list(range(0, len(self.ids), 16))
        ends = [at + 1 for at, character in enumerate(self.text) if character == "\n"]
        return [0, *(end for end in ends if end < len(self.text))]

    def _prompt(self, passages: Sequence[tuple[int, int]], output_tokens: int) -> Prompt:
        wanted = sum(length for _, length in passages)
        if self.ids:
            ids = sum((_around(self.ids, start, length) for start, length in passages), ())
            return Prompt(text="", token_ids=ids, input_tokens=wanted, output_tokens=output_tokens)
        texts = (_around(self.text, start, length * CHARACTERS_PER_TOKEN) for start, length in passages)
        return Prompt(text="".join(texts), input_tokens=wanted, output_tokens=output_tokens)


_Passage = TypeVar("_Passage", str, tuple[int, ...])


def _around(whole: _Passage, start: int, length: int) -> _Passage:
    """So much of a sequence from there on, beginning anew at its end."""
    passage = whole[start : start + length]
    while len(passage) < length:
        passage += whole[: length - len(passage)]
    return passage
