"""Messages of conversations in OpenAI's and ShareGPT's formats: who speaks, and the text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from servetop.workload.datasets.rows import BadRow, valid_text

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"
_ROLES = {
    SYSTEM: SYSTEM,
    "developer": SYSTEM,
    USER: USER,
    "human": USER,
    ASSISTANT: ASSISTANT,
    "gpt": ASSISTANT,
    "chatgpt": ASSISTANT,
    "bing": ASSISTANT,
    "bard": ASSISTANT,
    "model": ASSISTANT,
    "bot": ASSISTANT,
    "ai": ASSISTANT,
    "function_call": ASSISTANT,
    TOOL: TOOL,
    "function": TOOL,
    "ipython": TOOL,
    "observation": TOOL,
    "function_response": TOOL,
}
"""Roles by their names in lower case; `developer` and `function` are OpenAI's, the last four those of agent traces."""
_TEXT_PARTS = ("text", "input_text", "output_text")
_CALLS = ("tool_calls", "function_call")
_RESULT_PART, _CALL_PART = "tool_result", "tool_use"
_REASONING_PARTS = ("thinking", "redacted_thinking")
"""Parts of Anthropic's messages, in which the user sends the results of tools; reasoning is not sent again."""


def message_of(column: str, message: object) -> tuple[str, str]:
    """Role and text of a message; a plain string is a question. BadRow for anything else."""
    if isinstance(message, str):
        return USER, valid_text(column, message)
    if not isinstance(message, dict):
        raise BadRow(column, "a list of questions or messages", message)
    speaker = message.get("role", message.get("from"))
    role = _ROLES.get(speaker.lower()) if isinstance(speaker, str) else None
    if role is None:
        raise BadRow(column, f"messages of {', '.join(dict.fromkeys(_ROLES.values()))}", speaker)
    if role == USER and _has_only_results(message.get("content")):
        role = TOOL
    return role, text_of(column, message, may_be_empty=role in (ASSISTANT, TOOL))


def _has_only_results(content: object) -> bool:
    """Whether the parts of a content are all results of tools."""
    parts = content if isinstance(content, list) else []
    return bool(parts) and all(isinstance(part, Mapping) and part.get("type") == _RESULT_PART for part in parts)


def text_of(column: str, message: object, *, may_be_empty: bool = False) -> str:
    """The text of a message: its content, and the calls of tools as JSON. BadRow without a text that it must have."""
    if not isinstance(message, dict):
        raise BadRow(column, "a list of messages", message)
    calls = [json.dumps(message[name], ensure_ascii=False) for name in _CALLS if message.get(name)]
    content = message.get("content", message.get("value"))
    if content is None and (calls or may_be_empty):
        content = ""
    texts = [_part_text(column, part) for part in content] if isinstance(content, list) else [content]
    if not all(isinstance(text, str) for text in texts):
        raise BadRow(column, "the text of a message", content)
    return valid_text(column, "\n".join(text for text in (*texts, *calls) if text))


def _part_text(column: str, part: object) -> object:
    """Return the text of a part of a content; BadRow for other kinds, such as images, which are not sent."""
    if isinstance(part, str):
        return part
    kind = part.get("type", "text") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(kind, str):
        raise BadRow(column, "parts of type text", part)
    if kind == _RESULT_PART:
        return text_of(column, part, may_be_empty=True)
    if kind == _CALL_PART:
        return json.dumps({"name": part.get("name"), "input": part.get("input")}, ensure_ascii=False)
    if kind in _REASONING_PARTS:
        return ""
    if kind not in _TEXT_PARTS:
        raise BadRow(column, "parts of type text", kind)
    return part.get("text")
