"""Several completions of one request (`n`, lists of prompts), which share a connection and report summed usage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from servetop.simulator.server.generation_request import ApiError, GenerationRequest, read_count, read_generation

MAX_CHOICES = 256
"""Maximum completions of one request."""


class ChoiceUsage(Protocol):
    """The part of a completion that the summed usage needs."""

    @property
    def prompt(self) -> int:
        """The number of the completion's prompt within the request."""
        ...

    def usage(self) -> dict[str, Any]:
        """Return the token counts so far."""
        ...


class Choices:
    """The completions of one request, in the order of their index."""

    def __init__(self, count: int) -> None:
        self.members: list[ChoiceUsage] = []
        self._finished: dict[int, dict[str, object]] = {}
        self._count = count

    def finish(self, index: int, choice: dict[str, object]) -> bool:
        """Record the choice of a finished completion; True for the last one."""
        self._finished[index] = choice
        return len(self._finished) == self._count

    def is_finished(self, index: int) -> bool:
        """Whether the completion with this index is finished."""
        return index in self._finished

    @property
    def choices(self) -> list[dict[str, object]]:
        """The choices of the finished completions."""
        return [self._finished[index] for index in sorted(self._finished)]

    def usage(self) -> dict[str, object]:
        """Return the summed token counts; each prompt is counted once."""
        usages = [member.usage() for member in self.members]
        prompts = {member.prompt: usage["prompt_tokens"] for member, usage in zip(self.members, usages, strict=True)}
        prompt, output = sum(prompts.values()), sum(usage["completion_tokens"] for usage in usages)
        total: dict[str, object] = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + output,
            "completion_tokens": output,
        }
        details = {
            member.prompt: usage["prompt_tokens_details"]["cached_tokens"]
            for member, usage in zip(self.members, usages, strict=True)
            if "prompt_tokens_details" in usage
        }
        return total | ({"prompt_tokens_details": {"cached_tokens": sum(details.values())}} if details else {})


def read_generations(data: dict[str, Any], *, chat: bool, context_limit: int) -> list[tuple[int, GenerationRequest]]:
    """Parse a request into its generations, `n` per prompt, each with the number of its prompt."""
    count = read_count(data)
    single = {**data, "n": 1, "best_of": 1}
    prompts = _prompts(data, chat=chat)
    if count * max(len(prompts), 1) > MAX_CHOICES:
        raise ApiError(f"the simulator returns at most {MAX_CHOICES} completions per request", param="n")
    bodies = [{**single, "prompt": prompt} for prompt in prompts] or [single]
    generations = [read_generation(body, chat=chat, context_limit=context_limit) for body in bodies]
    return [
        (number, _with_own_seed(generation, index))
        for number, generation in enumerate(generations)
        for index in range(count)
    ]


def _prompts(data: dict[str, Any], *, chat: bool) -> Sequence[object]:
    """Return the prompts of a batch of texts or token id lists; empty for a single prompt."""
    prompt = data.get("prompt")
    if chat or not isinstance(prompt, list) or not all(isinstance(each, str | list) for each in prompt):
        return ()
    return prompt


def _with_own_seed(generation: GenerationRequest, index: int) -> GenerationRequest:
    """Add the index to the seed, so that the completions of one prompt differ in length."""
    return generation if generation.seed is None or not index else replace(generation, seed=generation.seed + index)
