"""The OpenAI wire: `/v1/completions` and `/v1/chat/completions`, streamed, as vLLM, llama.cpp, Ray and others speak it.

What counts as a token: with continuous usage (vLLM's `stream_options.continuous_usage_stats`) the rise of the
server's own count, because an event may carry several tokens, or one that decodes to no text yet; without it, one per
event with text. Reasoning text counts as text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.wire import Chunk, Prompt
from servetop.engines.dialects.sse import MAX_EVENT_BYTES, SseSplitter

_END = b"[DONE]"
_MAX_COUNT = 1 << 31
_MAX_ERROR_CHARS = 300
_CHAT_TEXTS = ("content", "reasoning_content", "reasoning")


class _OpenAIDialect(ABC):
    """What both endpoints share: options of the body, and the words of an error."""

    path: str
    chat: bool

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        self.model = model
        self.continuous_usage = continuous_usage

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """The JSON body of one request; `extra_body` has the last word on every key."""
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
        if workload.ignore_eos:
            request["ignore_eos"] = True
        if workload.temperature is not None:
            request["temperature"] = workload.temperature
        return orjson.dumps({**request, **workload.extra_body})

    @abstractmethod
    def _question(self, prompt: Prompt) -> dict[str, Any]:
        """The part of the body that holds the prompt."""

    def answer(self, body: bytes) -> Sequence[Chunk]:
        """One chunk with all text, tokens and counts, which is the end too; a body that is no answer is an error."""
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError as broken:
            return [Chunk(error=f"broken answer: {broken}: {_excerpt(body)}")]
        choices = content.get("choices") if isinstance(content, dict) else None
        if not isinstance(choices, list) or not choices:
            return [Chunk(error=f"no answer in the body: {_error_words(content)}")]
        texts = [_whole_text(choice) for choice in choices if isinstance(choice, dict)]
        found = content.get("usage")
        usage = found if isinstance(found, dict) else {}
        output, details = _count(usage.get("completion_tokens")), usage.get("prompt_tokens_details")
        cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
        tokens = sum(map(bool, texts)) if output is None else output
        return [Chunk("".join(texts), tokens, True, _count(usage.get("prompt_tokens")), output, cached)]

    def parser(self) -> OpenAIStream:
        """A fresh parser for one answer."""
        return OpenAIStream(chat=self.chat, continuous_usage=self.continuous_usage)

    def error_text(self, body: bytes) -> str:
        """The message of `{"error": {"message"}}`, `{"error"}`, `{"detail"}` or `{"message"}`, else the text itself."""
        try:
            return _error_words(orjson.loads(body))
        except orjson.JSONDecodeError:
            return _one_line(body.decode("utf-8", "replace"))


class CompletionsDialect(_OpenAIDialect):
    """`/v1/completions`; a prompt that has token ids is sent as ids, so its length is exact."""

    path = "/v1/completions"
    chat = False

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        return {"prompt": prompt.text if prompt.token_ids is None else prompt.token_ids}


class ChatDialect(_OpenAIDialect):
    """`/v1/chat/completions` with one user message; token ids cannot be sent, the prompt's text is."""

    path = "/v1/chat/completions"
    chat = True

    def _question(self, prompt: Prompt) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": prompt.text}]}


class OpenAIStream:
    """One answer's events as chunks; an event without tokens, counts, error or end gives none."""

    def __init__(self, *, chat: bool, continuous_usage: bool) -> None:
        self._chat = chat
        self._continuous = continuous_usage
        self._events = SseSplitter()
        self._seen = 0
        self._broken = False

    def feed(self, data: bytes) -> Sequence[Chunk]:
        """The chunks that these bytes complete; after a chunk with `error` there are no more."""
        events = self._events.feed(data)
        chunks = []
        for event in events:
            chunk = None if self._broken else self._chunk(event)
            if chunk is not None:
                chunks.append(chunk)
        if self._events.overflowed and not self._broken:
            chunks.append(self._error(f"an event of the stream is longer than {MAX_EVENT_BYTES >> 20} MiB"))
        return chunks

    def _error(self, words: str) -> Chunk:
        self._broken = True
        return Chunk(error=words)

    def _chunk(self, event: bytes) -> Chunk | None:
        if event == _END:
            return Chunk(final=True)
        try:
            content = orjson.loads(event)
        except orjson.JSONDecodeError as broken:
            return self._error(f"broken event in the stream: {broken}: {_excerpt(event)}")
        if not isinstance(content, dict):
            return self._error(f"unexpected event in the stream: {_excerpt(event)}")
        text, pieces, usage, choices = "", 0, content.get("usage"), content.get("choices")
        if content.get("error") is not None or content.get("object") == "error":
            return self._error(f"the server reports in the stream: {_error_words(content)}")
        if type(choices) is list and len(choices) == 1:
            text = self._text(choices[0])
            pieces = 1 if text else 0
        elif choices and isinstance(choices, list):
            texts = [found for choice in choices if (found := self._text(choice))]
            text, pieces = "".join(texts), len(texts)
        if usage is not None and isinstance(usage, dict):
            return self._counted(usage, text, pieces=pieces, within=bool(choices))
        self._seen += pieces
        return Chunk(text, pieces) if pieces else None

    def _text(self, choice: object) -> str:
        if not isinstance(choice, dict):
            return ""
        if not self._chat:
            text = choice.get("text")
            return text if isinstance(text, str) else ""
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        texts = [text for key in _CHAT_TEXTS if (text := delta.get(key)) and isinstance(text, str)]
        return texts[0] if len(texts) == 1 else "".join(texts)

    def _counted(self, usage: Mapping[str, Any], text: str, *, pieces: int, within: bool) -> Chunk:
        """With `within` the counts came beside a choice: if they are continuous, their rise is what it brought."""
        output = _count(usage.get("completion_tokens"))
        tokens = max(0, output - self._seen) if self._continuous and within and output is not None else pieces
        self._seen += tokens
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        return Chunk(text, tokens, False, _count(usage.get("prompt_tokens")), output, _count(cached))


def _whole_text(choice: Mapping[str, Any]) -> str:
    """Of one choice of an answer in one piece; a chat's reasoning and content together."""
    found = choice.get("message")
    message = found if isinstance(found, dict) else {}
    texts = (choice.get("text"), *(message.get(key) for key in _CHAT_TEXTS))
    return "".join(text for text in texts if isinstance(text, str))


def _count(value: object) -> int | None:
    """A believable token count, or None."""
    return value if type(value) is int and 0 <= value < _MAX_COUNT else None


def _error_words(content: object) -> str:
    while isinstance(content, dict):
        found = next((content[key] for key in ("error", "detail", "message") if content.get(key)), None)
        if found is None:
            break
        content = found
    return _one_line(content if isinstance(content, str) else orjson.dumps(content).decode())


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MAX_ERROR_CHARS else words[: _MAX_ERROR_CHARS - 1] + "…"


def _excerpt(event: bytes) -> str:
    return _one_line(event[:60].decode("utf-8", "replace"))
