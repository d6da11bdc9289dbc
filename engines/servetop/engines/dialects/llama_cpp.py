"""llama.cpp's own wire: `/completion`, whose every event tells how many tokens there are so far.

The event with `"stop": true` is the end; there is no `[DONE]`. A token that decodes to no text yet is an event too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.wire import Chunk, Prompt
from servetop.engines.dialects.reading import Reading, Usage, parsed
from servetop.engines.dialects.shapes import Shapes
from servetop.engines.dialects.stream import EventStream
from servetop.engines.dialects.words import count_in, count_of, error_text, error_words, excerpt


class LlamaCppDialect:
    """`/completion` with a text, or with token ids, which it takes as they are."""

    path = "/completion"

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        self.model = model
        """Told for the server's router mode; a server of one model does not look at it."""
        self.continuous_usage = continuous_usage
        """Without effect: this wire always has the count in every event."""
        self._shapes = Shapes(read_llama_cpp)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """The JSON body of one request; `extra_body` has the last word on every key."""
        request: dict[str, Any] = {
            "model": prompt.model or self.model,
            "prompt": prompt.text if prompt.token_ids is None else prompt.token_ids,
            "n_predict": prompt.output_tokens,
            "stream": workload.stream,
        }
        if workload.ignore_eos:
            request["ignore_eos"] = True
        if workload.temperature is not None:
            request["temperature"] = workload.temperature
        return orjson.dumps({**request, **workload.extra_body})

    def answer(self, body: bytes) -> Sequence[Chunk]:
        """One chunk with all text, tokens and counts, which is the end too; a body that is no answer is an error."""
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError as broken:
            return [Chunk(error=f"broken answer: {broken}: {excerpt(body)}")]
        text = content.get("content") if isinstance(content, dict) else None
        if not isinstance(text, str):
            return [Chunk(error=f"no answer in the body: {error_words(content)}")]
        usage = _usage(content)
        tokens = int(bool(text)) if usage.output is None else usage.output
        return [Chunk(text, tokens, True, usage.prompt, usage.output, usage.cached)]

    def parser(self, *, keep_texts: bool = True) -> EventStream:
        """A fresh parser for one answer; what it learns of the server's events serves the next ones."""
        return EventStream(read_llama_cpp, self._shapes, continuous=True, keep_texts=keep_texts)

    def error_text(self, body: bytes) -> str:
        """The message of `{"error": {"message"}}`, else the text itself."""
        return error_text(body)


def read_llama_cpp(event: bytes) -> Reading:
    """An event of `/completion`."""
    content = parsed(event)
    if isinstance(content, Reading):
        return content
    found = content.get("content")
    text = found if isinstance(found, str) else ""
    return Reading(text, 1 if text else 0, False, _usage(content), True, content.get("stop") is True)


def _usage(content: Mapping[str, Any]) -> Usage:
    """Tokens so far; `timings.cache_n` of the last event are those of the prompt that the slot still had."""
    evaluated, predicted = content.get("tokens_evaluated"), content.get("tokens_predicted")
    return Usage(count_of(evaluated), count_of(predicted), count_in(content.get("timings"), "cache_n"))
