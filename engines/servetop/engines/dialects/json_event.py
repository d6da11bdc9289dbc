"""Parses one event of a stream as JSON; the fast path must give the same result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from servetop.core.interfaces.dialect import ServerTiming
from servetop.engines.dialects.json_values import count_in, count_of, error_message, excerpt, seconds_of

_END = b"[DONE]"
REASONING_KEYS = ("reasoning_content", "reasoning")
"""Alternative keys of the reasoning text; a server that sends both sends the same text twice."""


class Usage(NamedTuple):
    """The server's cumulative token counts; None if not reported."""

    prompt: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class ParsedEvent(NamedTuple):
    """One event. The texts of several choices are joined, content before reasoning."""

    text: str = ""
    pieces: int = 0
    """Number of choices with text."""
    reasoning: bool = False
    """The whole text is reasoning."""
    usage: Usage | None = None
    with_choice: bool = False
    """The counts came with a choice: if they are continuous, their increase is the event's token count."""
    final: bool = False
    error: str | None = None
    reasoning_chars: int = 0
    """Characters of reasoning at the end of a text that begins with content."""
    timing: ServerTiming | None = None
    """The server's own times; only with counts."""
    stops: int = 0
    """Choices that ended with this event."""


Reader = Callable[[bytes], ParsedEvent]
"""Parses the data of an event; never raises."""


def read_completion(event: bytes) -> ParsedEvent:
    """Parse an event of `/v1/completions`."""
    return _read(event, _completion_text)


def read_chat(event: bytes) -> ParsedEvent:
    """Parse an event of `/v1/chat/completions`; one with both reasoning and content counts as content."""
    return _read(event, _chat_text)


def parsed(event: bytes) -> dict[str, Any] | ParsedEvent:
    """Parse an event's JSON object; for anything else return the end of the stream or an error."""
    if event == _END:
        return ParsedEvent(final=True)
    try:
        content = orjson.loads(event)
    except orjson.JSONDecodeError as error:
        return ParsedEvent(error=f"malformed event in the stream: {error}: {excerpt(event)}")
    if not isinstance(content, dict):
        return ParsedEvent(error=f"unexpected event in the stream: {excerpt(event)}")
    if content.get("error") is not None or content.get("object") == "error":
        return ParsedEvent(error=f"the server reports in the stream: {error_message(content)}")
    return content


def openai_usage(content: Mapping[str, Any]) -> Usage | None:
    """Return the `usage` of an event or response of `/v1/completions` or `/v1/chat/completions`."""
    usage = content.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(
        count_of(usage.get("prompt_tokens")),
        count_of(usage.get("completion_tokens")),
        count_in(usage.get("prompt_tokens_details"), "cached_tokens"),
        count_in(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def timing_of(content: Mapping[str, Any]) -> ServerTiming | None:
    """Return vLLM's `metrics` (`--enable-per-request-metrics`) or llama.cpp's `timings`; None without either.

    llama.cpp reports no queue time. vLLM's `time_to_first_token_ms` starts when the request is scheduled.
    """
    for key, names in _TIMES.items():
        times = content.get(key)
        if isinstance(times, dict):
            timing = ServerTiming(*(seconds_of(times.get(name)) for name in names))
            return None if timing == _NO_TIMES else timing
    return None


_TIMES = {
    "metrics": ("queue_time_ms", "time_to_first_token_ms", "generation_time_ms"),
    "timings": ("", "prompt_ms", "predicted_ms"),
}
_NO_TIMES = ServerTiming()


def _read(event: bytes, text_of: Callable[[object], tuple[str, str]]) -> ParsedEvent:
    fields = parsed(event)
    if isinstance(fields, ParsedEvent):
        return fields
    found, usage = fields.get("choices"), openai_usage(fields)
    choices = found if isinstance(found, list) else []
    if len(choices) == 1:
        content, reasoning = text_of(choices[0])
        stops = _stops(choices[0])
        result = _text_event(content, reasoning, 1 if content or reasoning else 0, usage=usage, with_choice=True)
    else:
        texts = [each for each in map(text_of, choices) if any(each)]
        content, reasoning = ("".join(each[part] for each in texts) for part in (0, 1))
        stops = sum(map(_stops, choices))
        result = _text_event(content, reasoning, len(texts), usage=usage, with_choice=bool(choices))
    timing = None if usage is None else timing_of(fields)
    return result if timing is None and not stops else result._replace(timing=timing, stops=stops)


def _stops(choice: object) -> int:
    """Return 1 if a choice has a finish reason; some servers always send an empty one."""
    return int(bool(isinstance(choice, dict) and choice.get("finish_reason")))


def _text_event(content: str, reasoning: str, pieces: int, *, usage: Usage | None, with_choice: bool) -> ParsedEvent:
    mixed = len(reasoning) if content else 0
    only_reasoning = bool(reasoning) and not content
    return ParsedEvent(content + reasoning, pieces, only_reasoning, usage, with_choice, reasoning_chars=mixed)


def _completion_text(choice: object) -> tuple[str, str]:
    text = choice.get("text") if isinstance(choice, dict) else None
    return (text, "") if isinstance(text, str) else ("", "")


def _chat_text(choice: object) -> tuple[str, str]:
    """Return the content and reasoning texts."""
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        return "", ""
    content = delta.get("content")
    if not isinstance(content, str):
        content = ""
    if len(delta) == 1 and content:
        return content, ""
    reasoning = next((text for key in REASONING_KEYS if (text := delta.get(key)) and isinstance(text, str)), "")
    return content + tool_call_text(delta), reasoning


def tool_call_text(message: Mapping[str, Any]) -> str:
    """Return the names and arguments of the tool calls in a message or delta, as the model generated them."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    parts = [function.get(key) for function in functions if isinstance(function, dict) for key in ("name", "arguments")]
    return "".join(part for part in parts if isinstance(part, str))
