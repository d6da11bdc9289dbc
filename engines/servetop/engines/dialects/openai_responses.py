"""The Responses API: `/v1/responses`, typed events, as documented by OpenAI and implemented by vLLM.

Each delta with text counts as one token, of reasoning (`response.reasoning_text.delta`) or of content
(`response.output_text.delta`, refusals, arguments of calls). `response.completed`, or `response.incomplete` when a
limit was reached, has the counts and ends the stream; there is no `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, render, sampling_options
from servetop.engines.dialects.json_event import ParsedEvent, Usage, parsed, timing_of
from servetop.engines.dialects.json_values import count_in, count_of, error_message
from servetop.engines.dialects.message_text import call_text, plain_text
from servetop.engines.dialects.server_errors import failed_finish

_DELTAS, _NO_TEXT = ".delta", ".audio.delta"
_END_EVENTS = ("response.completed", "response.incomplete")
_ERROR_EVENTS = ("response.failed", "response.cancelled", "error")
_FAILED_STATUSES = ("failed", "cancelled")


def _input(prompt: Prompt) -> str | list[dict[str, str]]:
    """Return the prompt's text, or a list of messages if there are earlier ones."""
    if not prompt.messages:
        return prompt.text
    history = [{"role": role, "content": content} for role, content in prompt.messages]
    return [*history, {"role": "user", "content": prompt.text}]


def read_response(event: bytes) -> ParsedEvent:
    """Parse an event of `/v1/responses`."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    kind, response = str(content.get("type")), content.get("response")
    last = response if isinstance(response, dict) else {}
    if kind.endswith(_DELTAS) and not kind.endswith(_NO_TEXT):
        text = plain_text(content.get("delta"))
        return ParsedEvent(text, 1, "reasoning" in kind) if text else ParsedEvent()
    if kind in _ERROR_EVENTS:
        return ParsedEvent(error=f"the server reports in the stream: {error_message(last or content)}")
    if kind in _END_EVENTS:
        failure = _failure(last)
        return ParsedEvent(usage=_usage(last), final=True, timing=timing_of(last), error=failure)
    return ParsedEvent()


def _failure(response: Mapping[str, Any]) -> str | None:
    """Return why a complete or last response has no completion: it failed, was cancelled, or was filtered."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    status = response.get("status")
    return failed_finish(status if status in _FAILED_STATUSES else reason)


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
    """Yield (content, reasoning) of each output item of a complete response; one of them is empty."""
    for item in output:
        if isinstance(item, dict):
            content = plain_text(item.get("content")) or plain_text(item.get("summary"))
            called = call_text({"function_call": item}) if "arguments" in item or "input" in item else ""
            yield ("", content) if item.get("type") == "reasoning" else (content + called, "")


class ResponsesDialect(JsonDialect):
    """`/v1/responses` with text or messages as input and one completion; it accepts no token ids."""

    path = "/v1/responses"
    reader = staticmethod(read_response)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body`."""
        request = {
            "model": prompt.model or self.model,
            "input": _input(prompt),
            "max_output_tokens": prompt.output_tokens,
            "stream": workload.stream,
            **sampling_options(workload),
        }
        return render(request, workload.extra_body)

    def whole(self, content: Any) -> Chunk | None:
        if not isinstance(content, dict) or not isinstance(content.get("output"), list):
            return None
        if (failure := _failure(content)) is not None:
            return Chunk(error=failure)
        texts, usage = list(_whole_texts(content["output"])), _usage(content) or Usage()
        text, reasoning = ("".join(each[part] for each in texts) for part in (0, 1))
        tokens = usage.output or sum(map(any, texts))
        counts = (usage.prompt, usage.output, usage.cached)
        chunk = Chunk(text + reasoning, tokens, True, *counts, reasoning_tokens=usage.reasoning)
        return chunk._replace(reasoning_chars=len(reasoning), timing=timing_of(content))
