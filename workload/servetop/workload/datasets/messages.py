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
    return role, text_of(column, message, may_be_empty=role in (ASSISTANT, TOOL))


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
    """The text of a part of a content; BadRow for other kinds, such as images, which are not sent."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type", "text") not in _TEXT_PARTS:
        raise BadRow(column, "parts of type text", part.get("type") if isinstance(part, Mapping) else part)
    return part.get("text")
