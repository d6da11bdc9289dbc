"""Base of the dialects with JSON bodies: whole responses, and streams of JSON events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt, StreamParser
from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.json_event import Reader
from servetop.engines.dialects.json_values import error_message, error_text, load_json
from servetop.engines.dialects.server_errors import reported_error
from servetop.engines.dialects.stream_parser import EventStream


def sampling_options(workload: WorkloadConfig) -> dict[str, Any]:
    """Return `ignore_eos` and `temperature` for a request body, if the workload sets them."""
    options: dict[str, Any] = {"ignore_eos": True} if workload.ignore_eos else {}
    if workload.temperature is not None:
        options["temperature"] = workload.temperature
    return options


def render(request: Mapping[str, Any], extra_body: Mapping[str, Any]) -> bytes:
    """Return the JSON of a request with the fields of `extra_body`; null removes a field."""
    return orjson.dumps(_merged(request, extra_body))


def _merged(request: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Merge as JSON Merge Patch (RFC 7386), but keep objects that the request lacks as they are, with their nulls."""
    merged = dict(request)
    for name, value in extra.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(name), Mapping):
            merged[name] = _merged(merged[name], value)
        else:
            merged[name] = value
    return merged


class JsonDialect(ABC):
    """A `Dialect` whose subclasses add the request body and the parser of complete responses."""

    path: str
    reader: Reader
    counts_up = False
    """Every event has the server's cumulative token count."""
    ends_with_body = False
    """The stream has no end marker: a body that ends regularly ends it."""

    def __init__(self, model: str, *, continuous_usage: bool = False) -> None:
        self.model = model
        self.continuous_usage = continuous_usage
        """No effect on dialects that always or never have counts in every event."""
        self._templates = TemplateCache(type(self).reader)

    @abstractmethod
    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body` as in `render`."""

    @abstractmethod
    def whole(self, content: Any) -> Chunk | None:
        """Parse the JSON of a complete (non-streamed) response to one final chunk; None if it has no completion."""

    def parse_response(self, body: bytes) -> Sequence[Chunk]:
        """Parse a complete (non-streamed) response to one chunk: all text, tokens and counts, or an error."""
        try:
            content = load_json(body)
        except ValueError as error:
            return [Chunk(error=f"malformed response: {error}: {error_text(body)}")]
        if (text := reported_error(content)) is not None:
            return [Chunk(error=f"response body has no completion: {text}")]
        chunk = self.whole(content)
        if chunk is None:
            return [Chunk(error=f"response body has no completion: {error_message(content)}")]
        return [chunk]

    def parser(self, *, keep_texts: bool = True) -> StreamParser:
        """Return a parser for one response; learned event templates are shared with later ones."""
        return EventStream(
            type(self).reader,
            self._templates,
            continuous=self.counts_up,
            keep_texts=keep_texts,
            ends_with_body=self.ends_with_body,
        )

    def error_text(self, body: bytes) -> str:
        """Return the message of `{"error": {"message"}}`, `{"error"}`, `{"detail"}` or `{"message"}`, else the text."""
        return error_text(body)
