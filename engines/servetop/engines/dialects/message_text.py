"""Finds the text of a message or delta: content, refusals, tool calls and reasoning, in all the places servers use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

REASONING_KEYS = (
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
    "reasoning_details",
    "thinking_blocks",
)
"""Alternative keys of the reasoning text; a server that sends several of them sends the same text in each."""
_TEXT_KEYS = ("text", "thinking", "content", "value", "summary", "reasoning", "refusal")
_MAX_DEPTH = 6


def message_texts(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the content and the reasoning of a message or delta. Refusals and calls of tools are content."""
    content = message.get("content")
    if isinstance(content, str):
        if len(message) == 1:
            return content, ""
        hidden = ""
    else:
        content, hidden = _part_texts(content)
    return content + plain_text(message.get("refusal")) + call_text(message), hidden or reasoning_text(message)


def reasoning_text(message: Mapping[str, Any]) -> str:
    """Return the reasoning of a message, a delta, or a choice of text completions."""
    return next((text for key in REASONING_KEYS if (value := message.get(key)) and (text := plain_text(value))), "")


def call_text(message: Mapping[str, Any]) -> str:
    """Return the names and arguments of the tool calls in a message or delta, as the model generated them."""
    calls = message.get("tool_calls")
    called = list(calls) if isinstance(calls, list) else []
    functions = [call.get("function") or call.get("custom") for call in called if isinstance(call, dict)]
    functions.append(message.get("function_call"))
    return "".join(
        _argument(function.get(key))
        for function in functions
        if isinstance(function, dict)
        for key in ("name", "arguments", "input")
    )


def _argument(value: object) -> str:
    """Return a name, or arguments, which some servers send as an object instead of a string."""
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode() if isinstance(value, dict) and value else ""


def _part_texts(content: object) -> tuple[str, str]:
    """Return (content, reasoning) of content that is a list of typed parts, or one part."""
    parts = content if isinstance(content, list) else [content]
    texts = [(_is_reasoning(part), plain_text(part)) for part in parts if isinstance(part, str | dict)]
    return "".join(text for hidden, text in texts if not hidden), "".join(text for hidden, text in texts if hidden)


def _is_reasoning(part: object) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and ("thinking" in kind or "reasoning" in kind)


def plain_text(value: object, depth: int = _MAX_DEPTH) -> str:
    """Return the text of a string, of a typed part, or of a list of these."""
    if isinstance(value, str):
        return value
    return "".join(plain_text(each, depth - 1) for each in _inner(value)) if depth and value else ""


def _inner(value: object) -> Iterator[object]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield next((value[key] for key in _TEXT_KEYS if value.get(key)), None)
