"""The OpenAI dialect: `/v1/completions` and `/v1/chat/completions`, as in vLLM, llama.cpp, Ray and others.

What counts as a token: with continuous usage (vLLM's `stream_options.continuous_usage_stats`) the rise of the
server's own count, because an event may carry several tokens, or one that decodes to no text yet; without it, one per
event with text. Reasoning text counts as text, and is reported separately; so do the names and arguments of tool calls.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, sampling_options
from servetop.engines.dialects.json_event import (
    Usage,
    openai_usage,
    read_chat,
    read_completion,
    timing_of,
    tool_call_text,
)

_THOUGHTS = ("reasoning_content", "reasoning")


class OpenAIDialect(JsonDialect):
    """Base of both endpoints: options of the body, and whole responses."""

    refused: Collection[str] = ()
    """Fields that the server does not take; a request may still have them by `extra_body`."""

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        super().__init__(model, continuous_usage=continuous_usage)
        self.counts_up = continuous_usage

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request; `extra_body` overrides every key."""
        options: dict[str, Any] = {"include_usage": True}
        if self.continuous_usage:
            options["continuous_usage_stats"] = True
        request: dict[str, Any] = {
            "model": prompt.model or self.model,
            **self._question(prompt),
            "max_tokens": prompt.output_tokens,
            "stream": workload.stream,
        }
        if workload.stream:
            request["stream_options"] = options
        if workload.n > 1:
            request["n"] = workload.n
        request |= sampling_options(workload)
        taken = {name: value for name, value in request.items() if name not in self.refused}
        return orjson.dumps({**taken, **workload.extra_body})

    @abstractmethod
    def _question(self, prompt: Prompt) -> dict[str, Any]:
        """The part of the body that holds the prompt."""

    def whole(self, content: Any) -> Chunk | None:
        """Texts of all choices, counts and times."""
        choices = content.get("choices") if isinstance(content, dict) else None
        if not isinstance(choices, list) or not choices:
            return None
        texts = [_whole_text(choice) for choice in choices if isinstance(choice, dict)]
        answer, thought = ("".join(each[part] for each in texts) for part in (0, 1))
        usage = openai_usage(content) or Usage()
        tokens = sum(map(any, texts)) if usage.output is None else usage.output
        counts = (usage.prompt, usage.output, usage.cached)
        chunk = Chunk(
            answer + thought, tokens, True, *counts, reasoning_tokens=usage.reasoning, reasoning_chars=len(thought)
        )
        return chunk._replace(timing=timing_of(content))


class CompletionsDialect(OpenAIDialect):
    """`/v1/completions`; a prompt that has token ids is sent as ids, so its length is exact."""

    path = "/v1/completions"
    reader = staticmethod(read_completion)

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": prompt.text if prompt.token_ids is None else prompt.token_ids}


class TextCompletionsDialect(CompletionsDialect):
    """`/v1/completions` of a server that takes no token ids: the text is sent, whose length is an estimate."""

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": prompt.text}


class ChatDialect(OpenAIDialect):
    """`/v1/chat/completions`: what was said before, and one user message; token ids cannot be sent, the text is."""

    path = "/v1/chat/completions"
    reader = staticmethod(read_chat)

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        said = [{"role": role, "content": content} for role, content in prompt.messages]
        return {"messages": [*said, {"role": "user", "content": prompt.text}]}


def _whole_text(choice: Mapping[str, Any]) -> tuple[str, str]:
    """Answer and reasoning of one choice of an answer in one piece."""
    found = choice.get("message")
    message = found if isinstance(found, dict) else {}
    answers = (choice.get("text"), message.get("content"), tool_call_text(message))
    thoughts = [message.get(key) for key in _THOUGHTS]
    return _joined(answers), _joined(thoughts)


def _joined(texts: Sequence[object]) -> str:
    return "".join(text for text in texts if isinstance(text, str))
