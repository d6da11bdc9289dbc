"""The OpenAI dialect of `transformers serve`, which rejects unknown fields and sends no `[DONE]`.

The last event always has the counts, and so ends the stream. Prompts are sent as text: it accepts no token ids.
"""

from __future__ import annotations

from servetop.engines.dialects.json_event import ParsedEvent, read_chat, read_completion
from servetop.engines.dialects.openai_api import ChatDialect, TextCompletionsDialect

REJECTED_FIELDS = ("ignore_eos", "stream_options", "n")


def read_transformers_completion(event: bytes) -> ParsedEvent:
    """Parse an event of `/v1/completions`."""
    return _ended_by_counts(read_completion(event))


def read_transformers_chat(event: bytes) -> ParsedEvent:
    """Parse an event of `/v1/chat/completions`."""
    return _ended_by_counts(read_chat(event))


class TransformersCompletionsDialect(TextCompletionsDialect):
    """`/v1/completions` with a text prompt."""

    reader = staticmethod(read_transformers_completion)
    rejected_fields = REJECTED_FIELDS


class TransformersChatDialect(ChatDialect):
    """`/v1/chat/completions`."""

    reader = staticmethod(read_transformers_chat)
    rejected_fields = REJECTED_FIELDS


def _ended_by_counts(parsed: ParsedEvent) -> ParsedEvent:
    return parsed if parsed.usage is None or parsed.error else parsed._replace(final=True)
