"""Which fields of a JSON log hold the time, the lengths, the prompt and the session of a request."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from servetop.core.errors import UsageError

_BODIES = ("", "request.", "request.body.", "body.", "request_body.", "input.")
_ANSWERS = ("", "response.", "response.body.", "response_body.", "body.", "output.")
_SESSIONS = ("session_id", "sessionId", "session", "conversation_id", "conversationId", "thread_id", "chat_id")


def _with(prefixes: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names for prefix in prefixes)


DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "timestamp": (
        "timestamp", "ts", "time", "@timestamp", "start_time", "startTime", "request_time", "requested_at",
        "created_at", "createdAt", "created", "datetime", "request.timestamp", "request.start_time",
    ),
    "duration": (),
    "input_length": _with(
        _ANSWERS,
        ("usage.prompt_tokens", "usage.input_tokens", "usage.inputTokens", "prompt_tokens", "input_tokens",
         "promptTokens", "inputTokens", "input_length"),
    ),
    "output_length": _with(
        _ANSWERS,
        ("usage.completion_tokens", "usage.output_tokens", "usage.outputTokens", "completion_tokens",
         "output_tokens", "completionTokens", "outputTokens", "output_length"),
    ),
    "prompt": _with(_BODIES, ("messages", "prompt", "input")),
    "session": (
        *_SESSIONS,
        *_with(("metadata.", "request.", "request.metadata.", "request.body.metadata."), _SESSIONS[:4]),
        *_with(("headers.", "request.headers.", "request_headers."),
               ("x-session-id", "X-Session-Id", "x-conversation-id")),
    ),
}  # fmt: skip
"""Paths that are tried for each field, in this order, as far as `--fields` does not name one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMap:
    """Paths by field; a path has dots between its names."""

    paths: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: DEFAULTS)

    def value(self, name: str, row: Mapping[str, object]) -> object:
        """Return the first value that the row has for a field; None if it has none."""
        values = (value_at(row, path) for path in self.paths[name])
        return next((value for value in values if value is not None), None)


def parse_fields(text: str) -> FieldMap:
    """Parse `timestamp=ts,prompt=request.tools+request.messages`: UsageError for an unknown field.

    The values of paths with a plus between them follow each other in a prompt.
    """
    paths: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, path = (each.strip() for each in part.partition("="))
        if name not in DEFAULTS:
            near = difflib.get_close_matches(name, DEFAULTS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(DEFAULTS)}"
            raise UsageError(f"--fields: unknown {name!r}: {hint}")
        if not equals or not path:
            raise UsageError(f"--fields: {name} has no path: give one, as in {name}=request.{name}")
        if name in paths:
            raise UsageError(f"--fields: {name} is given twice: join paths with +, as in prompt=request.tools+messages")
        paths[name] = (path,)
    return FieldMap(paths={**DEFAULTS, **paths})


def value_at(row: Mapping[str, object], path: str) -> object:
    """Return the value at a path; None if there is none. A text that holds JSON is read as its value on the way."""
    if "+" in path:
        found = [value for each in path.split("+") if (value := value_at(row, each)) is not None]
        return found or None
    return _descend(row, path.split("."))


def _descend(value: object, names: list[str]) -> object:
    if not names:
        return value
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = _decoded(value)
    if isinstance(value, list) and names[0].isdecimal():
        index = int(names[0])
        return _descend(value[index], names[1:]) if index < len(value) else None
    if not isinstance(value, Mapping):
        return None
    for count in range(1, len(names) + 1):  # a name may have dots itself
        name = ".".join(names[:count])
        if name in value and (found := _descend(value[name], names[count:])) is not None:
            return found
    return None


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
