"""llama.cpp's native dialect: `/completion`, with a cumulative token count in every event.

The event with `"stop": true` ends the stream; there is no `[DONE]`. A token without text yet also has an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, render, sampling_options
from servetop.engines.dialects.json_event import ParsedEvent, Usage, parsed, timing_of
from servetop.engines.dialects.json_values import count_in, count_of


def read_llama_cpp(event: bytes) -> ParsedEvent:
    """Parse an event of `/completion`."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    found = content.get("content")
    text = found if isinstance(found, str) else ""
    final = content.get("stop") is True
    result = ParsedEvent(text, 1 if text else 0, False, _usage(content), True, final)
    return result._replace(timing=timing_of(content)) if final else result


def _usage(content: Mapping[str, Any]) -> Usage:
    """Return the token counts; `timings.cache_n` of the last event counts the cached prompt tokens."""
    evaluated, predicted = content.get("tokens_evaluated"), content.get("tokens_predicted")
    return Usage(count_of(evaluated), count_of(predicted), count_in(content.get("timings"), "cache_n"))


class LlamaCppDialect(JsonDialect):
    """`/completion` with token ids, or text for a prompt without them."""

    path = "/completion"
    reader = staticmethod(read_llama_cpp)
    counts_up = True

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body`."""
        request = {
            "model": prompt.model or self.model,
            "prompt": prompt.text if prompt.token_ids is None else prompt.token_ids,
            "n_predict": prompt.output_tokens,
            "stream": workload.stream,
            **sampling_options(workload),
        }
        return render(request, workload.extra_body)

    def whole(self, content: Any) -> Chunk | None:
        text = content.get("content") if isinstance(content, dict) else None
        if not isinstance(text, str):
            return None
        usage = _usage(content)
        tokens = int(bool(text)) if usage.output is None else usage.output
        return Chunk(text, tokens, True, usage.prompt, usage.output, usage.cached, timing=timing_of(content))
