"""The Responses API: `/v1/responses`, typed events, as documented by OpenAI and implemented by vLLM.

Each delta with text counts as a token, of the answer (`response.output_text.delta`, `response.refusal.delta`) or of its
reasoning (`response.reasoning_text.delta`, `response.reasoning_summary_text.delta`). `response.completed`, or
`response.incomplete` when a limit was reached, carries the counts and is the end; there is no `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, sampling_options
from servetop.engines.dialects.json_event import ParsedEvent, Usage, parsed, timing_of
from servetop.engines.dialects.json_values import count_in, count_of, error_words

_ANSWERS = ("response.output_text.delta", "response.refusal.delta")
_THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_ENDS = ("response.completed", "response.incomplete")
_FAILURES = ("response.failed", "error")


def _asked(prompt: Prompt) -> str | list[dict[str, str]]:
    """The text; as the last of several messages where something was said before."""
    if not prompt.messages:
        return prompt.text
    said = [{"role": role, "content": content} for role, content in prompt.messages]
    return [*said, {"role": "user", "content": prompt.text}]


def read_response(event: bytes) -> ParsedEvent:
    """An event of `/v1/responses`."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    kind, response = content.get("type"), content.get("response")
    if kind in _ANSWERS or kind in _THOUGHTS:
        text = content.get("delta")
        return ParsedEvent(text, 1, kind in _THOUGHTS) if text and isinstance(text, str) else ParsedEvent()
    if kind in _ENDS:
        told = response if isinstance(response, dict) else {}
        return ParsedEvent(usage=_usage(told), final=True, timing=timing_of(told))
    if kind in _FAILURES:
        return ParsedEvent(error=f"the server reports in the stream: {error_words(response or content)}")
    return ParsedEvent()


def _usage(response: Mapping[str, Any]) -> Usage | None:
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(
        count_of(usage.get("input_tokens")),
        count_of(usage.get("output_tokens")),
        count_in(usage.get("input_tokens_details"), "cached_tokens"),
        count_in(usage.get("output_tokens_details"), "reasoning_tokens"),
    )


def _whole_texts(output: Sequence[object]) -> Iterator[tuple[str, str]]:
    """Of each item of an answer in one piece its text, as answer or as reasoning."""
    for item in output:
        parts = item.get("content") if isinstance(item, dict) else None
        texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        text = "".join(text for text in texts if isinstance(text, str))
        yield ("", text) if isinstance(item, dict) and item.get("type") == "reasoning" else (text, "")


class ResponsesDialect(JsonDialect):
    """`/v1/responses` with text or messages as input; token ids cannot be sent, and there is but one answer."""

    path = "/v1/responses"
    reader = staticmethod(read_response)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request; `extra_body` overrides every key."""
        request = {
            "model": prompt.model or self.model,
            "input": _asked(prompt),
            "max_output_tokens": prompt.output_tokens,
            "stream": workload.stream,
            **sampling_options(workload),
            **workload.extra_body,
        }
        return orjson.dumps(request)

    def whole(self, content: Any) -> Chunk | None:
        if not isinstance(content, dict) or not isinstance(content.get("output"), list) or content.get("error"):
            return None
        texts, usage = list(_whole_texts(content["output"])), _usage(content) or Usage()
        answer, thought = ("".join(each[part] for each in texts) for part in (0, 1))
        tokens = sum(map(any, texts)) if usage.output is None else usage.output
        counts = (usage.prompt, usage.output, usage.cached)
        chunk = Chunk(
            answer + thought, tokens, True, *counts, reasoning_tokens=usage.reasoning, reasoning_chars=len(thought)
        )
        return chunk._replace(timing=timing_of(content))
