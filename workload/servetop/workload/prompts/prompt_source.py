"""Prompt sources: pure, seeded streams of prompts of given lengths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from servetop.core.interfaces.dialect import Prompt
from servetop.workload.datasets.rows import DatasetRow
from servetop.workload.prompts.length_sources import LengthPair
from servetop.workload.prompts.ordinary_tokens import UNCHECKED_IDS
from servetop.workload.token_estimate import CHARACTERS_PER_TOKEN, estimated_tokens

_PREFIX, _BLOCK_OF_TRACE = 0x9F1, 0xB10C
_PICKS = 64
"""Prefixes drawn at a time."""

_WORDS = (
    "the of and to in that it was for on are as with his they at be this have from or one had by word but not what "
    "all were we when your can said there use an each which she do how their if will up other about out many then "
    "them these so some her would make like him into time has look two more write go see number no way could people "
    "my than first water been call who oil its now find long down day did get come made may part"
)
"""Common English words: each is one token, with its leading space, in the usual vocabularies."""


def common_words() -> list[str]:
    """Return the words that random texts consist of."""
    return _WORDS.split()


LengthStream = Callable[[], Iterator[LengthPair]]
"""Returns a new stream of lengths, the same at each call."""
Rows = Callable[[], Iterator[DatasetRow]]
"""Returns a new stream of a dataset's rows, without end."""


class PromptSource(Protocol):
    """Prompts of a workload; every iterator of a source gives the same prompts."""

    def prompts(self) -> Iterator[Prompt]:
        """Prompts without end."""
        ...


class Vocabulary(Protocol):
    """One-token pieces, and the prompts that they make."""

    def draw(self, generator: np.random.Generator, count: int) -> list[int]:
        """Draw a number of random pieces."""
        ...

    def prompt(self, pieces: Sequence[int], output_tokens: int) -> Prompt:
        """Return the prompt of these pieces."""
        ...


class TokenIds:
    """Random token ids, for dialects that accept them: prompts have exactly the requested length."""

    def __init__(self, ids: Sequence[int] = ()) -> None:
        """`ids` are ordinary tokens of the model; none: its tokenizer is unknown."""
        self._ids = np.asarray(ids or UNCHECKED_IDS)

    def draw(self, generator: np.random.Generator, count: int) -> list[int]:
        ids: list[int] = self._ids[generator.integers(0, len(self._ids), size=count)].tolist()
        return ids

    def prompt(self, pieces: Sequence[int], output_tokens: int) -> Prompt:
        """Return a prompt with `token_ids` and no text."""
        return Prompt(text="", token_ids=tuple(pieces), input_tokens=len(pieces), output_tokens=output_tokens)


class CommonWords:
    """Random English words, for dialects that take text: one word for each token.

    The token count is an estimate; the count of the server, where it reports one, replaces it.
    """

    def __init__(self) -> None:
        self._words = common_words()

    def draw(self, generator: np.random.Generator, count: int) -> list[int]:
        picks: list[int] = generator.integers(0, len(self._words), size=count).tolist()
        return picks

    def prompt(self, pieces: Sequence[int], output_tokens: int) -> Prompt:
        """Return a prompt with text and no `token_ids`."""
        text = " ".join(self._words[piece] for piece in pieces)
        return Prompt(text=text, input_tokens=len(pieces), output_tokens=output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrefixes:
    """A pool of prefixes, one drawn for each request, so that a prefix cache of the engine gets hits."""

    vocabulary: Vocabulary
    length: int = 0
    """Tokens of each prefix; 0: none."""
    count: int = 1
    seed: tuple[int, ...] = ()

    def pieces(self) -> Iterator[list[int]]:
        """Yield the pieces of each request's prefix, without end; empty ones where prompts share none."""
        if not self.length:
            yield from itertools.repeat([])
        for number in prefix_picks(self.count, self.seed):
            yield self.prefix(number)

    def prefix(self, number: int) -> list[int]:
        """Return the pieces of one of the prefixes."""
        return self.vocabulary.draw(np.random.default_rng((*self.seed, _PREFIX, number)), self.length)


def prefix_picks(count: int, seed: tuple[int, ...]) -> Iterator[int]:
    """Yield which of `count` prefixes each request has, without end."""
    generator = np.random.default_rng((*seed, _PREFIX))
    while True:
        yield from generator.integers(0, count, size=_PICKS).tolist()


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomPrompts:
    """Random pieces: prompts have nothing in common but a shared prefix."""

    vocabulary: Vocabulary
    seed: tuple[int, ...]
    lengths: LengthStream
    prefixes: SharedPrefixes

    def prompts(self) -> Iterator[Prompt]:
        """Prompts; the prefix is added to the drawn length."""
        generator = np.random.default_rng(self.seed)
        for prefix, (length, output) in zip(self.prefixes.pieces(), self.lengths(), strict=False):
            pieces = prefix + self.vocabulary.draw(generator, length)
            yield self.vocabulary.prompt(pieces, output)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePrompts:
    """Random pieces with the lengths of a trace; blocks with the same identity have the same pieces."""

    rows: Rows
    vocabulary: Vocabulary
    prefixes: SharedPrefixes
    block_tokens: int
    seed: tuple[int, ...]
    lengths: LengthStream | None = None
    """Replaces the lengths of the trace."""

    def prompts(self) -> Iterator[Prompt]:
        generator = np.random.default_rng(self.seed)
        lengths = None if self.lengths is None else self.lengths()
        for row, prefix in zip(self.rows(), self.prefixes.pieces(), strict=False):
            length, output = (row.input_tokens or 1, row.output_tokens or 1) if lengths is None else next(lengths)
            pieces = [*prefix]
            until = len(pieces) + length
            for block in row.blocks:
                if (left := until - len(pieces)) <= 0:
                    break
                block_seed = (*self.seed, _BLOCK_OF_TRACE, block)
                pieces += self.vocabulary.draw(np.random.default_rng(block_seed), self.block_tokens)[:left]
            pieces += self.vocabulary.draw(generator, until - len(pieces))
            yield self.vocabulary.prompt(pieces, output)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPrompts:
    """The texts of a dataset, in order, with its output lengths, or those of `lengths`."""

    rows: Rows
    lengths: LengthStream
    own_lengths: bool = True
    """Use the output lengths of the dataset where it has any."""

    def prompts(self) -> Iterator[Prompt]:
        """Prompts; their token counts are estimates."""
        for row, (_, output) in zip(self.rows(), self.lengths(), strict=False):
            own = row.output_tokens if self.own_lengths else None
            text = row.text or ""
            yield Prompt(text=text, input_tokens=estimated_tokens(text), output_tokens=own or output)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPrompts:
    """Passages of one text, each from a random line on, wrapping around at the end.

    With `ids`, the engine's token ids of the text, passages have exactly the requested length; otherwise four
    characters count as a token. A shared prefix is the passage that starts at one of the first lines.
    """

    text: str
    ids: tuple[int, ...] = ()
    lengths: LengthStream
    prefix_len: int = 0
    num_prefixes: int = 1
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        generator = np.random.default_rng(self.seed)
        starts = self._starts()
        for length, output in self.lengths():
            prefix = starts[int(generator.integers(0, min(self.num_prefixes, len(starts))))]
            start = starts[int(generator.integers(0, len(starts)))]
            yield self._prompt(((prefix, self.prefix_len), (start, length)), output)

    def _starts(self) -> list[int]:
        """Return the positions at which passages start: lines, or every 16th token."""
        if self.ids:
            return list(range(0, len(self.ids), 16))
        ends = [at + 1 for at, character in enumerate(self.text) if character == "\n"]
        return [0, *(end for end in ends if end < len(self.text))]

    def _prompt(self, passages: Sequence[tuple[int, int]], output_tokens: int) -> Prompt:
        tokens = sum(length for _, length in passages)
        if self.ids:
            ids = sum((_around(self.ids, start, length) for start, length in passages), ())
            return Prompt(text="", token_ids=ids, input_tokens=tokens, output_tokens=output_tokens)
        texts = (_around(self.text, start, length * CHARACTERS_PER_TOKEN) for start, length in passages)
        return Prompt(text="".join(texts), input_tokens=tokens, output_tokens=output_tokens)


_Passage = TypeVar("_Passage", str, tuple[int, ...])


def _around(whole: _Passage, start: int, length: int) -> _Passage:
    """Return a part of a sequence, wrapping around at its end."""
    passage = whole[start : start + length]
    while len(passage) < length:
        passage += whole[: length - len(passage)]
    return passage
