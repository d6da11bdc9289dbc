"""Reads plausible numbers and error messages from a server's JSON."""

from __future__ import annotations

import orjson

from servetop.core.units import MS_PER_S

_MAX_COUNT = 1 << 31
_MAX_ERROR_CHARS = 300
_MAX_MILLISECONDS = 1e9
"""Maximum plausible duration: eleven days."""


def count_of(value: object) -> int | None:
    """Return a plausible token count, or None."""
    return value if type(value) is int and 0 <= value < _MAX_COUNT else None


def seconds_of(milliseconds: object) -> float | None:
    """Return a plausible duration in seconds, or None."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return milliseconds / MS_PER_S if 0 <= milliseconds < _MAX_MILLISECONDS else None


def count_in(details: object, key: str) -> int | None:
    """Return the plausible token count at `key`; None if `details` is not an object."""
    return count_of(details.get(key)) if isinstance(details, dict) else None


def error_text(body: bytes) -> str:
    """Return the message of `{"error": {"message"}}`, `{"error"}`, `{"detail"}` or `{"message"}`, else the text."""
    try:
        return error_message(orjson.loads(body))
    except orjson.JSONDecodeError:
        return one_line(body.decode("utf-8", "replace"))


def error_message(content: object) -> str:
    """Return the innermost message of an error object, on one line."""
    while isinstance(content, dict):
        inner = next((content[key] for key in ("error", "detail", "message") if content.get(key)), None)
        if inner is None:
            break
        content = inner
    return one_line(content if isinstance(content, str) else orjson.dumps(content).decode())


def one_line(text: str) -> str:
    """Collapse white space to single blanks, and cut the text to 300 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_ERROR_CHARS else line[: _MAX_ERROR_CHARS - 1] + "…"


def excerpt(event: bytes) -> str:
    """Return the beginning of an invalid event, for an error text."""
    return one_line(event[:60].decode("utf-8", "replace"))
