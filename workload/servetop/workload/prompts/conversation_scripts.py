"""Conversations: the script of questions, and the prompt of each turn with the history before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from servetop.core.config import WorkloadConfig
from servetop.core.errors import UsageError
from servetop.core.interfaces.dialect import Prompt
from servetop.workload.datasets.rows import Turn
from servetop.workload.distribution_spec import DistributionSpec, KnownDistributions, SpecParameter, parse_distribution
from servetop.workload.prompts.prompt_source import CommonWords, LengthStream, Rows, SharedPrefixes
from servetop.workload.token_estimate import estimated_tokens

_MOST_TURNS = 10_000
_COUNT = SpecParameter(low=1, high=_MOST_TURNS, low_included=True)
TURN_COUNTS: KnownDistributions = {"fixed": {"turns": _COUNT}, "uniform": {"min": _COUNT, "max": _COUNT}}
SEPARATOR = "\n\n"
"""Between an answer and the next question, in dialects whose prompt is one text."""
_STREAM = 0x7124


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The questions of one conversation."""

    turns: tuple[Turn, ...]
    """At least one; all have an output length."""
    system: str = ""
    """System prompt; it precedes the first question in dialects whose prompt is one text."""
    messages: bool = False
    """The dialect takes messages; otherwise each prompt is one text with the whole history."""
    cancel_after: tuple[int | None, ...] = ()
    """Of each turn, if some are cancelled, the output tokens after which the client cancels it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPrompt(Prompt):
    """One turn of a conversation, with its history."""

    script: Script
    turn: int = 1
    """From 1."""
    conversation: int | None = None
    """Id of the conversation's first request; None in the first turn."""

    @property
    def last(self) -> bool:
        """Whether this is the last turn."""
        return self.turn >= len(self.script.turns)

    @property
    def most_tokens(self) -> int:
        """Prompt and output tokens, counted or estimated."""
        return self.input_tokens + self.output_tokens


def first_turn(script: Script) -> TurnPrompt:
    """Return the first turn of a conversation; its prompt tokens are an estimate."""
    question, system = script.turns[0], script.system
    history = (("system", system),) if system and script.messages else ()
    text = f"{system}{SEPARATOR}{question.question}" if system and not script.messages else question.question
    tokens = estimated_tokens(system + text) if history else estimated_tokens(text)
    return TurnPrompt(
        text=text, messages=history, input_tokens=tokens, output_tokens=question.output_tokens or 1, script=script
    )


def next_turn(before: TurnPrompt, completion: str, *, history_tokens: int, conversation: int) -> TurnPrompt:
    """Return the turn after a completed one; `history_tokens` are the counted tokens of its prompt and completion."""
    question = before.script.turns[before.turn]
    if before.script.messages:
        text, messages = question.question, (*before.messages, ("user", before.text), ("assistant", completion))
    else:
        text, messages = f"{before.text}{completion}{SEPARATOR}{question.question}", ()
    return TurnPrompt(
        text=text,
        messages=messages,
        input_tokens=history_tokens + estimated_tokens(question.question),
        output_tokens=question.output_tokens or 1,
        script=before.script,
        turn=before.turn + 1,
        conversation=conversation,
        cancel_after=before.script.cancel_after[before.turn] if before.script.cancel_after else None,
    )


def parse_turns(text: str) -> DistributionSpec | None:
    """Parse the number of turns from `3`, `fixed:turns=3` or `uniform:min=2,max=6`; None for the empty text: all turns.

    UsageError for anything else.
    """
    if not text:
        return None
    spec = parse_distribution(f"fixed:turns={text}" if text[0].isdigit() else text, TURN_COUNTS, option="--num-turns")
    numbers = [spec.get(name, 0) for name in spec.numbers]
    if any(number != int(number) or number < 1 for number in numbers) or numbers != sorted(numbers):
        raise UsageError(f"--num-turns {text}: give integers from 1, as in 3 or uniform:min=2,max=6")
    return spec


def turn_counts(workload: WorkloadConfig, seed: tuple[int, ...]) -> Iterator[int]:
    """Number of turns of each conversation, without end."""
    spec = parse_turns(workload.num_turns)
    low, high = (_MOST_TURNS, _MOST_TURNS) if spec is None else _range_of(spec)
    generator = np.random.default_rng((*seed, _STREAM))
    while True:
        yield from generator.integers(low, high, size=64, endpoint=True).tolist()


def most_turns(workload: WorkloadConfig) -> int:
    """Most turns of a conversation."""
    spec = parse_turns(workload.num_turns)
    return _MOST_TURNS if spec is None else _range_of(spec)[1]


def _range_of(spec: DistributionSpec) -> tuple[int, int]:
    ends = ("turns", "turns") if spec.name == "fixed" else ("min", "max")
    return int(spec[ends[0]]), int(spec[ends[1]])


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPrompts:
    """First turns of a dataset's conversations, in order, with its output lengths, or those of `lengths`."""

    rows: Rows
    lengths: LengthStream
    own_lengths: bool = True
    workload: WorkloadConfig
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        lengths, messages = self.lengths(), self.workload.in_messages
        for row, count in zip(self.rows(), turn_counts(self.workload, self.seed), strict=False):
            outputs = (next(lengths)[1] for _ in row.turns)
            turns = tuple(
                Turn(turn.question, (turn.output_tokens if self.own_lengths else None) or output)
                for turn, output in zip(row.turns[:count], outputs, strict=False)
            )
            yield first_turn(Script(turns=turns, system=row.text or "", messages=messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomConversations:
    """First turns of conversations of random words; each question and each completion has a length of its own.

    Prompts are texts in every dialect, because completions are texts and become a part of the next prompt.
    """

    lengths: LengthStream
    prefixes: SharedPrefixes
    workload: WorkloadConfig
    seed: tuple[int, ...]

    def prompts(self) -> Iterator[Prompt]:
        """First turns; a shared prefix precedes the first question."""
        words, generator = CommonWords(), np.random.default_rng(self.seed)
        lengths, messages = self.lengths(), self.workload.in_messages
        for prefix, count in zip(self.prefixes.pieces(), turn_counts(self.workload, self.seed), strict=False):
            turns = []
            for number in range(count):
                length, output = next(lengths)
                question = words.prompt((prefix if not number else []) + words.draw(generator, length), output)
                turns.append(Turn(question.text, output))
            yield first_turn(Script(turns=tuple(turns), messages=messages))
