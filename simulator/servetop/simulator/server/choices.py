"""Several completions of one request (`n`, lists of prompts): one connection, summed usage, ended by the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from servetop.simulator.server.generation_request import ApiError, GenerationRequest, read_count, read_generation

MAX_CHOICES = 256
"""Maximum completions of one request."""


class ChoiceListener(Protocol):
    """The part of a completion that its siblings use."""

    @property
    def prompt(self) -> int:
        """Number of its prompt within the request."""
        ...

    def usage(self) -> dict[str, Any]:
        """Return its token counts so far."""
        ...


class Choices:
    """The completions of one request, in the order of their index."""

    def __init__(self, count: int) -> None:
        self.members: list[ChoiceListener] = []
        self._ended: dict[int, dict[str, object]] = {}
        self._count = count

    def end(self, index: int, choice: dict[str, object]) -> bool:
        """Record a finished completion and its choice; True for the last one."""
        self._ended[index] = choice
        return len(self._ended) == self._count

    def is_over(self, index: int) -> bool:
        """Whether that completion is finished."""
        return index in self._ended

    @property
    def choices(self) -> list[dict[str, object]]:
        """The choices of the finished completions."""
        return [self._ended[index] for index in sorted(self._ended)]

    def usage(self) -> dict[str, object]:
        """Return the summed token counts; each prompt counts once."""
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
    """Parse a request into its generations, `n` per prompt, each with the number of its prompt."""
    count = read_count(data)
    single = {**data, "n": 1, "best_of": 1}
    prompts = _prompts(data, chat=chat)
    if count * max(len(prompts), 1) > MAX_CHOICES:
        raise ApiError(f"the simulator gives at most {MAX_CHOICES} answers to one request", param="n")
    asked = [{**single, "prompt": prompt} for prompt in prompts] or [single]
    read = [read_generation(each, chat=chat, context_limit=context_limit) for each in asked]
    return [(number, _varied(one, at)) for number, one in enumerate(read) for at in range(count)]


def _prompts(data: dict[str, Any], *, chat: bool) -> Sequence[object]:
    """Return the prompts of a batch of texts or token id lists; empty for a single prompt."""
    prompt = data.get("prompt")
    if chat or not isinstance(prompt, list) or not all(isinstance(each, str | list) for each in prompt):
        return ()
    return prompt


def _varied(generation: GenerationRequest, at: int) -> GenerationRequest:
    """Give each completion its own seed, so that their lengths differ."""
    return generation if generation.seed is None or not at else replace(generation, seed=generation.seed + at)
