"""What all wires share: a JSON body, answers in one piece, and events that a reader understands."""

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


class JsonDialect(ABC):
    """A `core.wire.Dialect`, but for its body and what an answer in one piece is."""

    path: str
    reader: Reader
    counts_up = False
    """Every event has the server's own count of tokens so far."""
    ends_with_body = False
    """There is no end marker: a body that ends in order is the whole answer."""

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        self.model = model
        self.continuous_usage = continuous_usage
        """Without effect on wires that always have counts in every event, or never."""
        self._shapes = TemplateCache(type(self).reader)

    @abstractmethod
    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """The JSON body of one request; `extra_body` has the last word on every key."""

    @abstractmethod
    def whole(self, content: Any) -> Chunk | None:
        """An answer in one piece as one chunk, which is the end too; None when that is no answer."""

    def parse_response(self, body: bytes) -> Sequence[Chunk]:
        """One chunk with all text, tokens and counts; a body that is no answer is an error."""
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError as broken:
            return [Chunk(error=f"broken answer: {broken}: {excerpt(body)}")]
        chunk = self.whole(content)
        return [Chunk(error=f"no answer in the body: {error_words(content)}") if chunk is None else chunk]

    def parser(self, *, keep_texts: bool = True) -> StreamParser:
        """A fresh parser for one answer; what it learns of the server's events serves the next ones."""
        reader, ends = type(self).reader, self.ends_with_body
        return EventStream(reader, self._shapes, continuous=self.counts_up, keep_texts=keep_texts, ends_with_body=ends)

    def error_text(self, body: bytes) -> str:
        """The message of `{"error": {"message"}}`, `{"error"}`, `{"detail"}` or `{"message"}`, else the text itself."""
        return error_text(body)
