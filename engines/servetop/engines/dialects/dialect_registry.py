"""From an endpoint's name, or a wire's place, to its dialect."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from servetop.core.errors import EngineError, UsageError
from servetop.core.interfaces.dialect import Dialect

OPENAI_ENDPOINTS: Mapping[str, str] = {
    "completions": "servetop.engines.dialects.openai_api:CompletionsDialect",
    "chat": "servetop.engines.dialects.openai_api:ChatDialect",
    "responses": "servetop.engines.dialects.openai_responses:ResponsesDialect",
}
"""The wires of servers that speak OpenAI's API, by endpoint."""
TEXT_ENDPOINTS: Mapping[str, str] = {
    "completions": "servetop.engines.dialects.openai_api:TextCompletionsDialect",
    "chat": OPENAI_ENDPOINTS["chat"],
}
"""Of those of them that take no token ids, and have no Responses API."""


def dialect_for(wire: str, *, model: str, continuous_usage: bool) -> Dialect:
    """The dialect at `module:Class`, or of one of OpenAI's endpoints by its name.

    `continuous_usage` asks the server for token counts in every event, where it can. UsageError for a name that is
    none, EngineError for a class that cannot be loaded.
    """
    module, _, name = OPENAI_ENDPOINTS.get(wire, wire).partition(":")
    if not name:
        raise UsageError(f"unknown endpoint {wire!r}: choose {', '.join(OPENAI_ENDPOINTS)}")
    try:
        dialect: Dialect = getattr(importlib.import_module(module), name)(model, continuous_usage=continuous_usage)
    except (ImportError, AttributeError) as error:
        raise EngineError(f"the wire {wire} cannot be loaded: {error}") from error
    return dialect


def endpoint_of(endpoint: str, endpoints: Mapping[str, str], *, title: str) -> str:
    """The endpoint that was asked for, or the usual one for none; UsageError when the engine does not have it."""
    if not endpoint:
        return next(iter(endpoints))
    if endpoint not in endpoints:
        *others, last = endpoints
        choice = f"{', '.join(others)} or {last}" if others else last
        raise UsageError(f"{title} has no endpoint {endpoint!r}: give --endpoint {choice}")
    return endpoint
