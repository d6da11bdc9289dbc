"""The registry of dialects: finds one by endpoint name or as `module:Class`."""

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
"""The dialects of OpenAI's API, by endpoint."""
TEXT_ENDPOINTS: Mapping[str, str] = {
    "completions": "servetop.engines.dialects.openai_api:TextCompletionsDialect",
    "chat": OPENAI_ENDPOINTS["chat"],
}
"""The dialects for servers without token ids and without the Responses API."""
NEW_LIMIT_CHAT = "servetop.engines.dialects.openai_api:NewLimitChatDialect"
"""The dialect for chats whose token limit is `max_completion_tokens`."""


def dialect_for(location: str, *, model: str, continuous_usage: bool) -> Dialect:
    """Create the dialect at `module:Class`, or that of one of OpenAI's endpoints by name.

    `continuous_usage` requests token counts in every event, if the server supports that. UsageError for an unknown
    name, EngineError for a class that cannot be loaded.
    """
    module, _, name = OPENAI_ENDPOINTS.get(location, location).partition(":")
    if not name:
        raise UsageError(f"unknown endpoint {location!r}: choose {', '.join(OPENAI_ENDPOINTS)}")
    try:
        dialect: Dialect = getattr(importlib.import_module(module), name)(model, continuous_usage=continuous_usage)
    except (ImportError, AttributeError) as error:
        raise EngineError(f"the dialect {location} cannot be loaded: {error}") from error
    return dialect


def endpoint_of(endpoint: str, endpoints: Mapping[str, str], *, title: str) -> str:
    """Return the requested endpoint, or the default; UsageError if the engine does not have it."""
    if not endpoint:
        return next(iter(endpoints))
    if endpoint not in endpoints:
        *others, last = endpoints
        choices = f"{', '.join(others)} or {last}" if others else last
        raise UsageError(f"{title} has no endpoint {endpoint!r}: give --endpoint {choices}")
    return endpoint
