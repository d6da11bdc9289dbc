"""Parses one event of a stream completely; the fast path must give the same result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from servetop.core.interfaces.dialect import ServerTiming
from servetop.engines.dialects.json_values import count_in, count_of, error_words, excerpt, seconds_of

_END = b"[DONE]"
_REASONING = ("reasoning_content", "reasoning")
"""Names of the same thing; a server that sends both sends the same text twice."""


class Usage(NamedTuple):
    """The server's token counts so far; None if not reported."""

    prompt: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class ParsedEvent(NamedTuple):
    """One event. The text of several choices is joined, their answers first."""

    text: str = ""
    pieces: int = 0
    """Number of choices with text."""
    reasoning: bool = False
    """The whole text is the model's reasoning."""
    usage: Usage | None = None
    within: bool = False
    """The counts came with a choice: if they are continuous, their increase is the tokens of the event."""
    final: bool = False
    error: str | None = None
    reasoning_chars: int = 0
    """Characters at the end of the text that are reasoning, where it begins with answer."""
    timing: ServerTiming | None = None
    """Beside counts only."""
    stops: int = 0
    """Choices that ended with this event."""


Reader = Callable[[bytes], ParsedEvent]
"""Parses the data of an event; never raises."""


def read_completion(event: bytes) -> ParsedEvent:
    """An event of `/v1/completions`."""
    return _read(event, _completion_text)


def read_chat(event: bytes) -> ParsedEvent:
    """An event of `/v1/chat/completions`; one with both reasoning and answer counts as answer."""
    return _read(event, _chat_text)


def parsed(event: bytes) -> dict[str, Any] | ParsedEvent:
    """Parse an event's JSON object; for anything else return the end of the stream or an error."""
    if event == _END:
        return ParsedEvent(final=True)
    try:
        content = orjson.loads(event)
    except orjson.JSONDecodeError as broken:
        return ParsedEvent(error=f"broken event in the stream: {broken}: {excerpt(event)}")
    if not isinstance(content, dict):
        return ParsedEvent(error=f"unexpected event in the stream: {excerpt(event)}")
    if content.get("error") is not None or content.get("object") == "error":
        return ParsedEvent(error=f"the server reports in the stream: {error_words(content)}")
    return content


def openai_usage(content: Mapping[str, Any]) -> Usage | None:
    """The `usage` of an event or an answer of the older endpoints."""
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
    """vLLM's `metrics` (`--enable-per-request-metrics`) or llama.cpp's `timings`, both in milliseconds; else None.

    llama.cpp tells no queue. What vLLM calls `time_to_first_token_ms` counts from when the request was scheduled.
    """
    for key, names in _TIMES.items():
        told = content.get(key)
        if isinstance(told, dict):
            timing = ServerTiming(*(seconds_of(told.get(name)) for name in names))
            return None if timing == _NOT_TOLD else timing
    return None


_TIMES = {
    "metrics": ("queue_time_ms", "time_to_first_token_ms", "generation_time_ms"),
    "timings": ("", "prompt_ms", "predicted_ms"),
}
_NOT_TOLD = ServerTiming()


def _read(event: bytes, text_of: Callable[[object], tuple[str, str]]) -> ParsedEvent:
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    found, usage = content.get("choices"), openai_usage(content)
    choices = found if isinstance(found, list) else []
    if len(choices) == 1:
        answer, thought = text_of(choices[0])
        stops = _stops(choices[0])
        reading = _told(answer, thought, 1 if answer or thought else 0, usage=usage, within=True)
    else:
        texts = [each for each in map(text_of, choices) if any(each)]
        answer, thought = ("".join(each[part] for each in texts) for part in (0, 1))
        stops = sum(map(_stops, choices))
        reading = _told(answer, thought, len(texts), usage=usage, within=bool(choices))
    timing = None if usage is None else timing_of(content)
    return reading if timing is None and not stops else reading._replace(timing=timing, stops=stops)


def _stops(choice: object) -> int:
    """Return 1 if a choice has a finish reason; some servers always send an empty one."""
    return int(bool(isinstance(choice, dict) and choice.get("finish_reason")))


def _told(answer: str, thought: str, pieces: int, *, usage: Usage | None, within: bool) -> ParsedEvent:
    both = len(thought) if answer else 0
    return ParsedEvent(answer + thought, pieces, bool(thought) and not answer, usage, within, reasoning_chars=both)


def _completion_text(choice: object) -> tuple[str, str]:
    text = choice.get("text") if isinstance(choice, dict) else None
    return (text, "") if isinstance(text, str) else ("", "")


def _chat_text(choice: object) -> tuple[str, str]:
    """Return answer and reasoning texts."""
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        return "", ""
    answer = delta.get("content")
    if not isinstance(answer, str):
        answer = ""
    if len(delta) == 1 and answer:
        return answer, ""
    thought = next((text for key in _REASONING if (text := delta.get(key)) and isinstance(text, str)), "")
    return answer + tool_call_text(delta), thought


def tool_call_text(message: Mapping[str, Any]) -> str:
    """Names and arguments of the calls that a message or its delta asks for, as the model generated them."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    parts = [function.get(key) for function in functions if isinstance(function, dict) for key in ("name", "arguments")]
    return "".join(part for part in parts if isinstance(part, str))
