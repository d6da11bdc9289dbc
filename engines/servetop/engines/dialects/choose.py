"""From an endpoint's name to its dialect."""

from __future__ import annotations

from collections.abc import Callable

from servetop.core.errors import UsageError
from servetop.core.wire import Dialect
from servetop.engines.dialects.openai import ChatDialect, CompletionsDialect
from servetop.engines.dialects.responses import ResponsesDialect

_DIALECTS: dict[str, Callable[..., Dialect]] = {
    "completions": CompletionsDialect,
    "chat": ChatDialect,
    "responses": ResponsesDialect,
}


def dialect_for(endpoint: str, *, model: str, continuous_usage: bool) -> Dialect:
    """The wire of an endpoint; `continuous_usage` asks the server for token counts in every event, where it can."""
    if endpoint not in _DIALECTS:
        raise UsageError(f"unknown endpoint {endpoint!r}: choose completions, chat or responses")
    return _DIALECTS[endpoint](model, continuous_usage=continuous_usage)
