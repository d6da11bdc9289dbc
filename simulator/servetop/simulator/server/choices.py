"""Several answers to one request: they share its connection, their usage is added up, and it ends with the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from servetop.simulator.server.generation_request import ApiError, GenerationRequest, read_count, read_generation

MAX_CHOICES = 256
"""Answers to one request."""


class ChoiceListener(Protocol):
    """An answer, as far as its siblings must know it."""

    @property
    def prompt(self) -> int:
        """Number of its prompt in the request."""
        ...

    def usage(self) -> dict[str, Any]:
        """Its own token counts so far."""
        ...


class Choices:
    """The answers of one request, in the order of their index."""

    def __init__(self, count: int) -> None:
        self.members: list[ChoiceListener] = []
        self._ended: dict[int, dict[str, object]] = {}
        self._count = count

    def end(self, index: int, choice: dict[str, object]) -> bool:
        """One of them is complete, with this choice; True for the last one."""
        self._ended[index] = choice
        return len(self._ended) == self._count

    def is_over(self, index: int) -> bool:
        """That one is complete."""
        return index in self._ended

    @property
    def choices(self) -> list[dict[str, object]]:
        """Those that are complete."""
        return [self._ended[index] for index in sorted(self._ended)]

    def usage(self) -> dict[str, object]:
        """Of all: each prompt is counted once, however many answers it gets."""
        own = [member.usage() for member in self.members]
        prompts = {member.prompt: usage["prompt_tokens"] for member, usage in zip(self.members, own, strict=True)}
        prompt, output = sum(prompts.values()), sum(usage["completion_tokens"] for usage in own)
        total: dict[str, object] = {
            "prompt_tokens": prompt, "total_tokens": prompt + output, "completion_tokens": output,
        }  # fmt: skip
        details = {
            member.prompt: usage["prompt_tokens_details"]["cached_tokens"]
            for member, usage in zip(self.members, own, strict=True)
            if "prompt_tokens_details" in usage
        }
        return total | ({"prompt_tokens_details": {"cached_tokens": sum(details.values())}} if details else {})


def read_generations(data: dict[str, Any], *, chat: bool, context_limit: int) -> list[tuple[int, GenerationRequest]]:
    """Each answer that a request wants, with the number of its prompt: `n` to each of its prompts."""
    count = read_count(data)
    single = {**data, "n": 1, "best_of": 1}
    prompts = _prompts(data, chat=chat)
    if count * max(len(prompts), 1) > MAX_CHOICES:
        raise ApiError(f"the simulator gives at most {MAX_CHOICES} answers to one request", param="n")
    asked = [{**single, "prompt": prompt} for prompt in prompts] or [single]
    read = [read_generation(each, chat=chat, context_limit=context_limit) for each in asked]
    return [(number, _varied(one, at)) for number, one in enumerate(read) for at in range(count)]


def _prompts(data: dict[str, Any], *, chat: bool) -> Sequence[object]:
    """Of a batch of texts or of lists of token ids; empty where the request has one prompt."""
    prompt = data.get("prompt")
    if chat or not isinstance(prompt, list) or not all(isinstance(each, str | list) for each in prompt):
        return ()
    return prompt


def _varied(generation: GenerationRequest, at: int) -> GenerationRequest:
    """The seed of each answer is its own, or all would be as long."""
    return generation if generation.seed is None or not at else replace(generation, seed=generation.seed + at)
