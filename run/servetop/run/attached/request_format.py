"""One way to write requests for a server of unknown engine: endpoint, token ids or text, and fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servetop.engines.dialects.dialect_registry import NEW_LIMIT_CHAT, OPENAI_ENDPOINTS, TEXT_ENDPOINTS

PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
"""Paths of the endpoints."""
LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
"""The names of the token limit."""


@dataclass(frozen=True, slots=True)
class RequestFormat:
    """One way to write requests; the default is that of servers that accept everything."""

    endpoint: str = "completions"
    as_text: bool = False
    """Prompts are text where they could be token ids."""
    without: tuple[str, ...] = ()
    """Fields that are left out."""
    new_limit: bool = False
    """The token limit is `max_completion_tokens`."""

    @property
    def dialect(self) -> str:
        """Location of the dialect, as in the registry."""
        if self.new_limit:
            return NEW_LIMIT_CHAT
        return (TEXT_ENDPOINTS if self.as_text else OPENAI_ENDPOINTS)[self.endpoint]

    def body_changes(self, extra_body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the user's changes of the body with those of the format; the user's take precedence."""
        return {**dict.fromkeys(self.without), **extra_body}

    @property
    def description(self) -> str:
        """Where requests go and what is special about them, as in `/v1/chat/completions without ignore_eos`."""
        text = PATHS[self.endpoint] + (" as text of estimated length" if self.as_text else "")
        text += f" with {NEW_LIMIT} instead of {LIMIT}" if self.new_limit else ""
        return text + (f" without {' and '.join(self.without)}" if self.without else "")
