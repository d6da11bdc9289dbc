"""Selects the requests that a client cancels mid-stream (`cancel_fraction`), and after how many tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.interfaces.dialect import Prompt
from servetop.workload.prompts.conversation_scripts import TurnPrompt
from servetop.workload.prompts.prompt_source import PromptSource

_STREAM = 0xCA9


def tokens_before_cancel(
    fraction: float, *, seed: Sequence[int], number: int, output_tokens: int, turn: int = 1
) -> int | None:
    """Output tokens after which request `number` of a prompt stream is cancelled; None: it is not cancelled.

    The same for any number of sender processes. `number` counts conversations, `turn` from 1.
    """
    if not fraction:
        return None
    generator = np.random.default_rng((*seed, _STREAM, number, turn))
    return int(generator.integers(1, max(2, output_tokens))) if generator.random() < fraction else None


@dataclass(frozen=True, slots=True)
class CancelledPrompts:
    """Prompts of a source, a fraction of them with the number of tokens after which the client cancels."""

    source: PromptSource
    fraction: float
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        for number, prompt in enumerate(self.source.prompts()):
            if isinstance(prompt, TurnPrompt):
                turns = enumerate(prompt.script.turns, start=1)
                after = tuple(self._after(number, turn.output_tokens or 1, turn=place) for place, turn in turns)
                script = dataclasses.replace(prompt.script, cancel_after=after)
                yield dataclasses.replace(prompt, cancel_after=after[0], script=script)
            else:
                yield dataclasses.replace(prompt, cancel_after=self._after(number, prompt.output_tokens))

    def _after(self, number: int, output_tokens: int, *, turn: int = 1) -> int | None:
        return tokens_before_cancel(
            self.fraction, seed=self.seed, number=number, output_tokens=output_tokens, turn=turn
        )
