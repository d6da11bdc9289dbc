"""From an endpoint's name to its dialect."""

from __future__ import annotations

from servetop.core.errors import UsageError
from servetop.core.wire import Dialect
from servetop.engines.dialects.openai import ChatDialect, CompletionsDialect

_DIALECTS = {"completions": CompletionsDialect, "chat": ChatDialect}


def dialect_for(endpoint: str, *, model: str, continuous_usage: bool) -> Dialect:
    """The wire of `completions` or `chat`; `continuous_usage` asks the server for token counts in every event."""
    if endpoint not in _DIALECTS:
        raise UsageError(f"unknown endpoint {endpoint!r}: choose {' or '.join(_DIALECTS)}")
    return _DIALECTS[endpoint](model, continuous_usage=continuous_usage)
