"""The text of a prompt, as logs hold it: a text, messages, or token ids."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping


def prompt_parts(value: object) -> tuple[str | None, tuple[int, ...]]:
    """Return the text and the token ids of a prompt, of which one is empty: (None, ()) without a prompt.

    The text of messages begins with that of their first ones, so that a later turn extends an earlier one.
    """
    if isinstance(value, str) and value.lstrip()[:2] in ("[{", "[ "):
        value = _decoded(value)
    if isinstance(value, list) and value and all(type(each) is int for each in value):
        return None, tuple(value)
    text = "".join(_texts(value))
    return text or None, ()


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a prompt, depth first; a role precedes the content of its message."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
            yield "\n"
    elif isinstance(value, Mapping):
        yield from _message(value)


def _message(message: Mapping[str, object]) -> Iterator[str]:
    yield f"{message.get('role', '')}\n"
    known = [message[name] for name in ("content", "parts", "text") if message.get(name) is not None]
    others = {name: value for name, value in message.items() if name not in _PLAIN and value is not None}
    for each in known[:1]:
        yield from _texts(each)
    if others:
        yield json.dumps(others, sort_keys=True)


_PLAIN = frozenset({"role", "content", "parts", "text", "type", "name", "finish_reason"})
