"""SGLang's native dialect: `/generate`, with the whole text and counts so far in every event, ended by `[DONE]`.

Source: sgl-project/sglang, `srt/entrypoints/http_server.py`, `srt/managers/tokenizer_manager.py`. A server with
`--stream-output` (`--incremental-streaming-output`) sends the new text alone: both are understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, sampling_options
from servetop.engines.dialects.json_event import ParsedEvent, Usage, parsed
from servetop.engines.dialects.json_values import count_in, error_words
from servetop.engines.dialects.stream_parser import EventStream


class SglangStream:
    """The events' chunks, each with the text that it added."""

    __slots__ = ("_events", "_told")

    def __init__(self, events: EventStream) -> None:
        self._events = events
        self._told = ""

    def feed(self, data: bytes) -> Sequence[Chunk]:
        return [
            chunk._replace(text=self._added(chunk.text)) if chunk.text else chunk for chunk in self._events.feed(data)
        ]

    def finish(self) -> Sequence[Chunk]:
        return self._events.finish()

    def frame_literals(self) -> tuple[bytes, bytes] | None:
        """Return None: no two events are alike."""
        return None

    def match_frames(self, middles: Sequence[bytes]) -> None:
        """Return None: events are never collected."""
        del middles

    def has_equal_text_sizes(self) -> bool:
        """Return False: it is not used, because each event has a count."""
        return False

    def _added(self, text: str) -> str:
        """What comes after the text of before; all of it where it does not begin with that."""
        whole = text.startswith(self._told)
        added = text[len(self._told) :] if whole else text
        self._told = text if whole else self._told + text
        return added


def read_sglang(event: bytes) -> ParsedEvent:
    """An event of `/generate`; its text is all that there is so far."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    if (why := _aborted(content)) is not None:
        return ParsedEvent(error=why)
    found = content.get("text")
    text = found if isinstance(found, str) else ""
    return ParsedEvent(text, 1 if text else 0, usage=_usage(content), within=True, stops=int(_ended(content)))


def _ended(content: dict[str, Any]) -> bool:
    meta = content.get("meta_info")
    return isinstance(meta, dict) and bool(meta.get("finish_reason"))


def _aborted(content: dict[str, Any]) -> str | None:
    """Why the engine gave the request up, from its last event."""
    meta = content.get("meta_info")
    reason = meta.get("finish_reason") if isinstance(meta, dict) else None
    if not isinstance(reason, dict) or reason.get("type") != "abort":
        return None
    return f"the server aborted the request: {error_words(reason)}"


def _usage(content: dict[str, Any]) -> Usage:
    meta = content.get("meta_info")
    return Usage(*(count_in(meta, key) for key in ("prompt_tokens", "completion_tokens", "cached_tokens")))


class SglangDialect(JsonDialect):
    """Text or token ids in, one answer out."""

    path = "/generate"
    reader = staticmethod(read_sglang)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request; `extra_body` overrides every key and parameter."""
        asked = {"text": prompt.text} if prompt.token_ids is None else {"input_ids": prompt.token_ids}
        parameters = {"max_new_tokens": prompt.output_tokens, **sampling_options(workload)}
        extra = dict(workload.extra_body)
        if isinstance(more := extra.pop("sampling_params", {}), dict):
            parameters |= more
        return orjson.dumps({**asked, "sampling_params": parameters, "stream": workload.stream, **extra})

    def whole(self, content: Any) -> Chunk | None:
        """Its text and counts, or why it was given up."""
        if not isinstance(content, dict) or not isinstance(content.get("text"), str):
            return None
        if (why := _aborted(content)) is not None:
            return Chunk(error=why)
        text, usage = content["text"], _usage(content)
        tokens = int(bool(text)) if usage.output is None else usage.output
        return Chunk(text, tokens, True, usage.prompt, usage.output, usage.cached)

    def parser(self, *, keep_texts: bool = True) -> SglangStream:
        """A fresh parser for one answer. Events that carry all ids so far have no shape: each is read exactly."""
        return SglangStream(EventStream(read_sglang, None, continuous=True, keep_texts=keep_texts))
