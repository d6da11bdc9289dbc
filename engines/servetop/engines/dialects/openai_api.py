"""The OpenAI dialect: `/v1/completions` and `/v1/chat/completions`, as in vLLM, llama.cpp, Ray and others.

With continuous usage (vLLM's `stream_options.continuous_usage_stats`), the tokens of an event are the increase of the
server's count, because an event may carry several tokens, or one that decodes to no text yet. Otherwise each event with
text is one token. Reasoning counts as text and is reported separately; names and arguments of tool calls count as text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, render, sampling_options
from servetop.engines.dialects.json_event import (
    Usage,
    chat_texts,
    choices_end,
    completion_texts,
    openai_usage,
    read_chat,
    read_completion,
    timing_of,
)

_NEW_LIMIT = "max_completion_tokens"
"""OpenAI's newer name of the token limit of a chat, the only one that its reasoning models accept."""


class OpenAIDialect(JsonDialect):
    """Base of both endpoints: the request body and the parser of complete responses."""

    rejected_fields: Collection[str] = ()
    """Request fields that the server does not accept; `extra_body` can still send them."""
    limit_field = "max_tokens"
    """The field of the token limit; it gives way to a `max_completion_tokens` of the user."""
    choice_texts: Callable[[object], tuple[str, str]]
    """Return the content and reasoning of one choice."""

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        super().__init__(model, continuous_usage=continuous_usage)
        self.counts_up = continuous_usage

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body`."""
        options: dict[str, Any] = {"include_usage": True}
        if self.continuous_usage:
            options["continuous_usage_stats"] = True
        request: dict[str, Any] = {
            "model": prompt.model or self.model,
            **self._prompt_fields(prompt),
            self._limit_field(workload): prompt.output_tokens,
            "stream": workload.stream,
        }
        if workload.stream:
            request["stream_options"] = options
        if workload.n > 1:
            request["n"] = workload.n
        request |= sampling_options(workload)
        accepted = {name: value for name, value in request.items() if name not in self.rejected_fields}
        return render(accepted, workload.extra_body)

    def _limit_field(self, workload: WorkloadConfig) -> str:
        return self.limit_field if workload.extra_body.get(_NEW_LIMIT) is None else _NEW_LIMIT

    @abstractmethod
    def _prompt_fields(self, prompt: Prompt) -> dict[str, Any]:
        """Return the fields of the body that hold the prompt."""

    def whole(self, content: Any) -> Chunk | None:
        """Return the texts of all choices, counts and times; an error if one of the choices failed."""
        choices = content.get("choices") if isinstance(content, dict) else None
        if not isinstance(choices, list) or not choices:
            return None
        _, failure = choices_end(choices)
        if failure is not None:
            return Chunk(error=failure)
        texts = [self.choice_texts(choice) for choice in choices]
        text, reasoning = ("".join(each[part] for each in texts) for part in (0, 1))
        usage = openai_usage(content) or Usage()
        tokens = usage.output or sum(map(any, texts))
        counts = (usage.prompt, usage.output, usage.cached)
        chunk = Chunk(text + reasoning, tokens, True, *counts, reasoning_tokens=usage.reasoning)
        return chunk._replace(reasoning_chars=len(reasoning), timing=timing_of(content), stops=len(choices))


class CompletionsDialect(OpenAIDialect):
    """`/v1/completions`; a prompt with token ids is sent as ids, so its length is exact."""

    path = "/v1/completions"
    reader = staticmethod(read_completion)
    choice_texts = staticmethod(completion_texts)

    def _prompt_fields(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": prompt.text if prompt.token_ids is None else prompt.token_ids}


class TextCompletionsDialect(CompletionsDialect):
    """`/v1/completions` of a server without token ids: the prompt is text of estimated length."""

    def _prompt_fields(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": prompt.text}


class ChatDialect(OpenAIDialect):
    """`/v1/chat/completions`: the earlier messages and one user message, as text; it accepts no token ids."""

    path = "/v1/chat/completions"
    reader = staticmethod(read_chat)
    choice_texts = staticmethod(chat_texts)

    def _prompt_fields(self, prompt: Prompt) -> dict[str, Any]:
        history = [{"role": role, "content": content} for role, content in prompt.messages]
        return {"messages": [*history, {"role": "user", "content": prompt.text}]}


class NewLimitChatDialect(ChatDialect):
    """`/v1/chat/completions` of a server that accepts the newer name of the token limit only."""

    limit_field = _NEW_LIMIT
