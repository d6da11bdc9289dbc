"""Parses one event of a stream as JSON; the fast path must give the same result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from servetop.core.interfaces.dialect import ServerTiming
from servetop.engines.dialects.json_values import count_in, count_of, excerpt, load_json, one_line, seconds_of
from servetop.engines.dialects.message_text import message_texts, plain_text, reasoning_text
from servetop.engines.dialects.server_errors import choice_end, is_keep_alive, reported_error

_END = b"[DONE]"
_STRUCTURES = (b"{", b"[", b'"')
"""First bytes of JSON; data that begins otherwise is text."""


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
    return _read(event, completion_texts)


def read_chat(event: bytes) -> ParsedEvent:
    """Parse an event of `/v1/chat/completions`; one with both reasoning and content counts as content."""
    return _read(event, chat_texts)


def parsed(event: bytes) -> dict[str, Any] | ParsedEvent:
    """Parse an event's JSON object; for anything else return the end of the stream, nothing, or an error."""
    if event == _END:
        return ParsedEvent(final=True)
    try:
        content = load_json(event)
    except ValueError as error:
        return _without_json(event, error)
    if isinstance(content, str):
        return _without_json(content.encode("utf-8", "replace"), None)
    if (text := reported_error(content)) is not None:
        return ParsedEvent(error=f"the server reports in the stream: {text}")
    if not isinstance(content, dict):
        return ParsedEvent(error=f"unexpected event in the stream: {excerpt(event)}")
    return content


def _without_json(event: bytes, error: ValueError | None) -> ParsedEvent:
    """Return the end of the stream, nothing for a keep-alive, or the error that a text is."""
    text = event.strip()
    if text.upper() == _END:
        return ParsedEvent(final=True)
    if not text or is_keep_alive(text):
        return ParsedEvent()
    if error is not None and text[:1] in _STRUCTURES:
        return ParsedEvent(error=f"malformed event in the stream: {error}: {excerpt(event)}")
    return ParsedEvent(error=f"malformed event in the stream: {one_line(text.decode('utf-8', 'replace'))}")


def is_cut_off(event: bytes) -> bool:
    """Whether the data of an event is the beginning of JSON, or of the end marker, that does not continue."""
    if event[:1] not in _STRUCTURES or event.strip() == _END:
        return False
    try:
        load_json(event)
    except ValueError:
        return True
    return False


def openai_usage(content: Mapping[str, Any]) -> Usage | None:
    """Return the `usage` of an event or response of `/v1/completions` or `/v1/chat/completions`."""
    usage = content.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(
        count_of(usage.get("prompt_tokens")),
        count_of(usage.get("completion_tokens")),
        count_in(usage.get("prompt_tokens_details"), "cached_tokens"),
        _reasoning_tokens(usage),
    )


def _reasoning_tokens(usage: Mapping[str, Any]) -> int | None:
    """Return the count of OpenAI's `completion_tokens_details`, of `output_tokens_details`, or SGLang's own field."""
    details = (count_in(usage.get(key), "reasoning_tokens") for key in _REASONING_DETAILS)
    return next((count for count in details if count is not None), count_of(usage.get("reasoning_tokens")))


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


_REASONING_DETAILS = ("completion_tokens_details", "output_tokens_details")
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
        result = _text_event(content, reasoning, 1 if content or reasoning else 0, usage=usage, with_choice=True)
    else:
        texts = [each for each in map(text_of, choices) if any(each)]
        content, reasoning = ("".join(each[part] for each in texts) for part in (0, 1))
        result = _text_event(content, reasoning, len(texts), usage=usage, with_choice=bool(choices))
    stops, failure = choices_end(choices)
    if failure is not None:
        return ParsedEvent(error=failure)
    timing = None if usage is None else timing_of(fields)
    return result if timing is None and not stops else result._replace(timing=timing, stops=stops)


def choices_end(choices: Sequence[object]) -> tuple[int, str | None]:
    """Return how many choices end here, and why the first of them that failed did."""
    ends = [choice_end(choice) for choice in choices]
    return sum(count for count, _ in ends), next((failure for _, failure in ends if failure is not None), None)


def _text_event(content: str, reasoning: str, pieces: int, *, usage: Usage | None, with_choice: bool) -> ParsedEvent:
    mixed = len(reasoning) if content else 0
    only_reasoning = bool(reasoning) and not content
    return ParsedEvent(content + reasoning, pieces, only_reasoning, usage, with_choice, reasoning_chars=mixed)


def completion_texts(choice: object) -> tuple[str, str]:
    """Return the content and reasoning of a choice of `/v1/completions`; some servers send one of a chat."""
    if not isinstance(choice, dict):
        return "", ""
    text = choice.get("text")
    if isinstance(text, str) and text:
        return text, ""
    if text is None and ("delta" in choice or "message" in choice):
        return chat_texts(choice)
    return plain_text(text), reasoning_text(choice)


def chat_texts(choice: object) -> tuple[str, str]:
    """Return the content and reasoning of a choice of a chat: of its delta, else of its message, else its text."""
    if not isinstance(choice, dict):
        return "", ""
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        delta = choice.get("message")
    if isinstance(delta, dict):
        return message_texts(delta)
    text = choice.get("text")
    return (text, "") if isinstance(text, str) else ("", "")
