"""Streams of prompt and output lengths: pure and seeded, each iterator of a source gives the same pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from servetop.core.arrays import IntArray

_BLOCK = 256
"""Lengths are drawn in blocks: a call of NumPy's generator costs as much for many numbers as for one."""
LengthPair = tuple[int, int]
"""Tokens of a prompt and of its completion."""
Draw = Callable[[np.random.Generator, int], IntArray]
"""Draws a number of lengths."""


class LengthSource(Protocol):
    """Prompt and output lengths of a workload's requests."""

    def pairs(self) -> Iterator[LengthPair]:
        """Pairs without end, at least one token each."""
        ...


@dataclass(frozen=True, slots=True)
class IndependentLengths:
    """Prompt and output lengths drawn independently of each other."""

    inputs: Draw
    outputs: Draw
    seed: tuple[int, ...]

    def pairs(self) -> Iterator[LengthPair]:
        """Pairs without end; draws below one token become one."""
        generator = np.random.default_rng(self.seed)
        while True:
            inputs = np.maximum(1, self.inputs(generator, _BLOCK))
            outputs = np.maximum(1, self.outputs(generator, _BLOCK))
            yield from zip(inputs.tolist(), outputs.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class EmpiricalLengths:
    """Observed pairs, drawn with replacement, so that prompt and output lengths stay correlated."""

    observed: IntArray
    """Shape (pairs, 2)."""
    seed: tuple[int, ...]

    def pairs(self) -> Iterator[LengthPair]:
        """Pairs without end."""
        generator = np.random.default_rng(self.seed)
        while True:
            picks = generator.integers(0, len(self.observed), size=_BLOCK)
            yield from ((int(prompt), int(output)) for prompt, output in self.observed[picks])


@dataclass(frozen=True, slots=True)
class RepeatedLengths:
    """A fixed sample of pairs, repeated in order."""

    sample: tuple[LengthPair, ...]

    def pairs(self) -> Iterator[LengthPair]:
        """Pairs without end."""
        return itertools.cycle(self.sample)


@dataclass(frozen=True, slots=True)
class LimitedLengths:
    """The prompts of a source with one output limit for all requests: the model decides when a completion ends."""

    source: LengthSource
    output_limit: int

    def pairs(self) -> Iterator[LengthPair]:
        """Pairs without end; each output length is the limit."""
        return ((prompt, self.output_limit) for prompt, _ in self.source.pairs())
