"""Base of the dialects with JSON bodies: whole responses, and streams of JSON events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt, StreamParser
from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.json_event import Reader
from servetop.engines.dialects.json_values import error_text, error_words, excerpt
from servetop.engines.dialects.stream_parser import EventStream


def sampling_options(workload: WorkloadConfig) -> dict[str, Any]:
    """`ignore_eos` and `temperature` of a request, where the workload sets them."""
    options: dict[str, Any] = {"ignore_eos": True} if workload.ignore_eos else {}
    if workload.temperature is not None:
        options["temperature"] = workload.temperature
    return options


class JsonDialect(ABC):
    """A `Dialect` without the request body and the parsing of a whole response."""

    path: str
    reader: Reader
    counts_up = False
    """Every event has the server's token count so far."""
    ends_with_body = False
    """There is no end marker: the regular end of the body ends the stream."""

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        self.model = model
        self.continuous_usage = continuous_usage
        """Without effect on dialects that always or never have counts in every event."""
        self._shapes = TemplateCache(type(self).reader)

    @abstractmethod
    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request; `extra_body` overrides every key."""

    @abstractmethod
    def whole(self, content: Any) -> Chunk | None:
        """Parse a whole response to one final chunk; None if it is not a completion."""

    def parse_response(self, body: bytes) -> Sequence[Chunk]:
        """Return one chunk with all text, tokens and counts, or with an error."""
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError as broken:
            return [Chunk(error=f"broken answer: {broken}: {excerpt(body)}")]
        chunk = self.whole(content)
        return [Chunk(error=f"no answer in the body: {error_words(content)}") if chunk is None else chunk]

    def parser(self, *, keep_texts: bool = True) -> StreamParser:
        """Return a parser for one response; learned event templates are shared with later ones."""
        reader, ends = type(self).reader, self.ends_with_body
        return EventStream(reader, self._shapes, continuous=self.counts_up, keep_texts=keep_texts, ends_with_body=ends)

    def error_text(self, body: bytes) -> str:
        """The message of `{"error": {"message"}}`, `{"error"}`, `{"detail"}` or `{"message"}`, else the text itself."""
        return error_text(body)
