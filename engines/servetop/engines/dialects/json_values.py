"""Reads JSON, plausible numbers and error messages that a server sends."""

from __future__ import annotations

import json
import math

import orjson

from servetop.core.text.shorten import cut_short
from servetop.core.units import MS_PER_S

_MAX_COUNT = 1 << 31
_MAX_ERROR_CHARS = 300
_EXCERPT_CHARS = 60
_BINARY_BYTES = 32
_MAX_MILLISECONDS = 1e9
"""Maximum plausible duration: eleven days."""
_MESSAGE_KEYS = (
    "error",
    "errors",
    "detail",
    "message",
    "msg",
    "error_message",
    "error_msg",
    "errorMessage",
    "error_description",
    "status_msg",
    "Message",
    "title",
    "base_resp",
    "Error",
    "err",
    "fault",
    "faultstring",
    "exception",
    "failure",
)
_MAX_DEPTH = 8
_MAX_MESSAGES = 4


def load_json(data: bytes) -> object:
    """Parse JSON, with all that Python's own parser accepts beyond the standard; ValueError if it is malformed.

    NaN, infinities and numbers out of range become None, half a surrogate pair becomes U+FFFD, a byte order mark is
    skipped, and the last of several equal keys counts.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        try:
            return _as_python_reads(data)
        except (ValueError, RecursionError):
            raise error from None


def _as_python_reads(data: bytes) -> object:
    text = data.decode("utf-8-sig").strip()
    content = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
    plain = json.dumps(content, ensure_ascii=False)
    return orjson.loads(plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def count_of(value: object) -> int | None:
    """Return a plausible token count, which some proxies write as `8.0`, or None."""
    if type(value) is float and value.is_integer():
        value = int(value)
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
    """Return the message of a JSON error, such as `{"error": {"message"}}` or `{"detail"}`, else the text."""
    if body.startswith(b"\0"):
        return f"binary data that starts with {str(body[:_BINARY_BYTES])[1:]}"
    try:
        return error_message(load_json(body))
    except ValueError:
        return one_line(body.decode("utf-8", "replace"))


def error_message(content: object) -> str:
    """Return the innermost message of an error object, on one line; the object itself if it has none."""
    return one_line(_message(content, _MAX_DEPTH) or orjson.dumps(content).decode())


def _message(content: object, depth: int) -> str:
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, list) and depth:
        found = (_message(each, depth - 1) for each in content[:_MAX_MESSAGES])
        return "; ".join(text for text in found if text)
    if isinstance(content, dict) and depth:
        texts = (_message(content[key], depth - 1) for key in _MESSAGE_KEYS if content.get(key))
        return next((text for text in texts if text), "")
    return ""


def one_line(text: str) -> str:
    """Collapse white space to single blanks, and cut the text to 300 characters."""
    return cut_short(" ".join(text.split()), _MAX_ERROR_CHARS)


def excerpt(event: bytes) -> str:
    """Return the beginning of an invalid event, for an error text."""
    text = event[: 4 * _EXCERPT_CHARS].decode("utf-8", "replace")
    return cut_short(" ".join(text.split()), _EXCERPT_CHARS)
