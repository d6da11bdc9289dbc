"""SGLang's native dialect: `/generate`, with cumulative text and counts in every event, ended by `[DONE]`.

Source: sgl-project/sglang, `srt/entrypoints/http_server.py`, `srt/managers/tokenizer_manager.py`. A server with
`--stream-output` (`--incremental-streaming-output`) sends only the new text: both forms are supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Chunk, Prompt
from servetop.engines.dialects.json_dialect import JsonDialect, render, sampling_options
from servetop.engines.dialects.json_event import ParsedEvent, Usage, parsed
from servetop.engines.dialects.json_values import count_in
from servetop.engines.dialects.server_errors import failed_finish
from servetop.engines.dialects.stream_parser import EventStream


class SglangStream:
    """Replaces the cumulative text of each chunk by the text that its event added."""

    __slots__ = ("_events", "_text_so_far")

    def __init__(self, events: EventStream) -> None:
        self._events = events
        self._text_so_far = ""

    def feed(self, data: bytes) -> Sequence[Chunk]:
        return [
            chunk._replace(text=self._added(chunk.text)) if chunk.text else chunk for chunk in self._events.feed(data)
        ]

    def finish(self) -> Sequence[Chunk]:
        return self._events.finish()

    def frame_literals(self) -> tuple[bytes, bytes] | None:
        """Return None: no two events repeat the same bytes."""
        return None

    def match_frames(self, middles: Sequence[bytes]) -> None:
        """Return None: events are never collected."""
        del middles

    def equal_text_sizes(self) -> None:
        """Return None: it is not used, because each event has a count."""

    def _added(self, text: str) -> str:
        """Return the text after the previous one; all of it if it does not begin with the previous one."""
        cumulative = text.startswith(self._text_so_far)
        added = text[len(self._text_so_far) :] if cumulative else text
        self._text_so_far = text if cumulative else self._text_so_far + text
        return added


def read_sglang(event: bytes) -> ParsedEvent:
    """Parse an event of `/generate`; its text is cumulative."""
    content = parsed(event)
    if isinstance(content, ParsedEvent):
        return content
    if (reason := _aborted(content)) is not None:
        return ParsedEvent(error=reason)
    found = content.get("text")
    text = found if isinstance(found, str) else ""
    return ParsedEvent(text, 1 if text else 0, usage=_usage(content), with_choice=True, stops=int(_ended(content)))


def _ended(content: dict[str, Any]) -> bool:
    meta = content.get("meta_info")
    return isinstance(meta, dict) and bool(meta.get("finish_reason"))


def _aborted(content: dict[str, Any]) -> str | None:
    """Return why the engine aborted the request, with the engine's message; None if it was not aborted."""
    meta = content.get("meta_info")
    reason = meta.get("finish_reason") if isinstance(meta, dict) else None
    return failed_finish(reason)


def _usage(content: dict[str, Any]) -> Usage:
    meta = content.get("meta_info")
    return Usage(*(count_in(meta, key) for key in ("prompt_tokens", "completion_tokens", "cached_tokens")))


class SglangDialect(JsonDialect):
    """`/generate` with text or token ids and one completion."""

    path = "/generate"
    reader = staticmethod(read_sglang)

    def body(self, prompt: Prompt, workload: WorkloadConfig) -> bytes:
        """Return the JSON body of one request, changed by `extra_body`."""
        prompt_fields = {"text": prompt.text} if prompt.token_ids is None else {"input_ids": prompt.token_ids}
        parameters = {"max_new_tokens": prompt.output_tokens, **sampling_options(workload)}
        request = {**prompt_fields, "sampling_params": parameters, "stream": workload.stream}
        return render(request, workload.extra_body)

    def whole(self, content: Any) -> Chunk | None:
        """Return the text and counts, or the reason of an abort."""
        if not isinstance(content, dict) or not isinstance(content.get("text"), str):
            return None
        if (reason := _aborted(content)) is not None:
            return Chunk(error=reason)
        text, usage = content["text"], _usage(content)
        tokens = int(bool(text)) if usage.output is None else usage.output
        return Chunk(text, tokens, True, usage.prompt, usage.output, usage.cached)

    def parser(self, *, keep_texts: bool = True) -> SglangStream:
        """Return a parser for one response; cumulative events fit no template, so each is parsed as JSON."""
        return SglangStream(EventStream(read_sglang, None, continuous=True, keep_texts=keep_texts))
