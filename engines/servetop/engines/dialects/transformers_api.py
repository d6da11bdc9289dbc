"""The OpenAI dialect of `transformers serve`, which rejects unknown fields and sends no `[DONE]`.

The end is the event with the counts, which comes last, and always. Prompts go as text: it takes no token ids.
"""

from __future__ import annotations

from servetop.engines.dialects.json_event import ParsedEvent, read_chat, read_completion
from servetop.engines.dialects.openai_api import ChatDialect, TextCompletionsDialect

REFUSED = ("ignore_eos", "stream_options", "n")


def read_transformers_completion(event: bytes) -> ParsedEvent:
    """An event of `/v1/completions`."""
    return _ended_by_counts(read_completion(event))


def read_transformers_chat(event: bytes) -> ParsedEvent:
    """An event of `/v1/chat/completions`."""
    return _ended_by_counts(read_chat(event))


class TransformersCompletionsDialect(TextCompletionsDialect):
    """`/v1/completions` with the prompt's text."""

    reader = staticmethod(read_transformers_completion)
    refused = REFUSED


class TransformersChatDialect(ChatDialect):
    """`/v1/chat/completions`."""

    reader = staticmethod(read_transformers_chat)
    refused = REFUSED


def _ended_by_counts(reading: ParsedEvent) -> ParsedEvent:
    return reading if reading.usage is None or reading.error else reading._replace(final=True)
