"""llama.cpp's native dialect: `/completion`, with the token count so far in every event.

The event with `"stop": true` is the end; there is no `[DONE]`. A token that decodes to no text yet is an event too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, sampling_options
from servetop.engines.dialects.json_event import ParsedEvent, Usage, parsed, timing_of
from servetop.engines.dialects.json_values import count_in, count_of


def read_llama_cpp(event: bytes) -> ParsedEvent:
    """An event of `/completion`."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    found = content.get("content")
    text = found if isinstance(found, str) else ""
    final = content.get("stop") is True
    reading = ParsedEvent(text, 1 if text else 0, False, _usage(content), True, final)
    return reading._replace(timing=timing_of(content)) if final else reading


def _usage(content: Mapping[str, Any]) -> Usage:
    """Tokens so far; `timings.cache_n` of the last event are those of the prompt that the slot still had."""
    evaluated, predicted = content.get("tokens_evaluated"), content.get("tokens_predicted")
    return Usage(count_of(evaluated), count_of(predicted), count_in(content.get("timings"), "cache_n"))


class LlamaCppDialect(JsonDialect):
    """`/completion` with a text, or with token ids, which it takes as they are."""

    path = "/completion"
    reader = staticmethod(read_llama_cpp)
    counts_up = True

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request; `extra_body` overrides every key."""
        request = {
            "model": prompt.model or self.model,
            "prompt": prompt.text if prompt.token_ids is None else prompt.token_ids,
            "n_predict": prompt.output_tokens,
            "stream": workload.stream,
            **sampling_options(workload),
            **workload.extra_body,
        }
        return orjson.dumps(request)

    def whole(self, content: Any) -> Chunk | None:
        text = content.get("content") if isinstance(content, dict) else None
        if not isinstance(text, str):
            return None
        usage = _usage(content)
        tokens = int(bool(text)) if usage.output is None else usage.output
        return Chunk(text, tokens, True, usage.prompt, usage.output, usage.cached, timing=timing_of(content))
