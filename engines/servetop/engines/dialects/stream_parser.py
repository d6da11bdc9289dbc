"""Stream parser (server-sent events): matches regular events by template and parses all others as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.fast_path import FastEventMatcher
from servetop.engines.dialects.json_event import ParsedEvent, Reader, Usage, is_cut_off
from servetop.engines.dialects.json_values import error_text, one_line
from servetop.engines.dialects.server_errors import is_error_name, is_keep_alive, is_notice
from servetop.engines.dialects.sse import MAX_EVENT_BYTES, SseEvent, SseSplitter

_NO_USAGE = Usage()
_EMPTY = SseSplitter()
"""Shared by all streams that are not in the middle of an event, as most are; it is never fed."""
_ENDED = (Chunk(final=True),)
_NOTHING = ParsedEvent()
_DEFAULT_NAME = b"message"
_JSON_STARTS = (b"{", b"[", b'"')
"""First bytes of data in JSON; `[DONE]` has one of them too."""


class EventStream(FastEventMatcher):
    """Parses the events of one response to chunks; an event without tokens, counts, error or end gives none.

    With `continuous`, the tokens of an event are the increase of the server's count. `templates` are shared by all
    streams of a server; without them every event is parsed as JSON. `ends_with_body` is for dialects without an end
    marker: a body that ends regularly after at least one token is complete. The class inherits from FastEventMatcher
    instead of holding one to save memory, because there are thousands of streams.
    """

    __slots__ = ("_ends_with_body", "_events", "_failed", "_reader", "_remark")

    def __init__(
        self,
        reader: Reader,
        templates: TemplateCache | None,
        *,
        continuous: bool,
        keep_texts: bool = True,
        ends_with_body: bool = False,
    ) -> None:
        super().__init__(templates or TemplateCache(reader, learns=False), continuous=continuous, keep_texts=keep_texts)
        self._reader = reader
        self._ends_with_body = ends_with_body
        self._events = _EMPTY
        self._failed = False
        self._remark: bytes | None = b""
        """Text of no field that ended the stream so far; None once it has its end, when such text does not matter."""

    def feed(self, data: bytes) -> Sequence[Chunk]:
        """Return the chunks that these bytes complete; none after a chunk with `error`."""
        if not self._events.held and not self._remark and (single := self.match_one(data)) is not None:
            return single
        chunks: list[Chunk] = []
        if self._failed:
            return chunks
        if self._events.held and (b"\n" in data or b"\r" in data):
            data = self._events.take_back() + data
        position, size = 0, len(data)
        while position < size:
            if not self._events.held and not self._remark:
                position = self.match_events(data, position, chunks)
            if position < size:
                position = self._parse_one(data, position, chunks)
        return chunks

    def finish(self) -> Sequence[Chunk]:
        is_whole, chunks = not self._events.held, self._last_chunks()
        if not self._failed and self._remark:
            chunks.append(self._error(_reported(self._remark)))
        complete = not self._failed and is_whole and (self.seen > 0 or self.has_matched)
        return [*chunks, *_ENDED] if self._ends_with_body and complete else chunks

    def _last_chunks(self) -> list[Chunk]:
        """Return the chunks of an event that the end of the body ends, unless it cuts it off."""
        chunks: list[Chunk] = []
        if self._failed or not self._events.held:
            return chunks
        for event in self._events.close():
            is_text = event.data[:1] not in _JSON_STARTS
            if not is_cut_off(event.data) and not (is_text and self._remark is None):
                self._add_chunk(self._parsed(event), chunks)
        return chunks

    def frame_literals(self) -> tuple[bytes, bytes] | None:
        return self._edges if self._literals_known and not self._events.held and not self._remark else None

    def _parse_one(self, data: bytes, position: int, chunks: list[Chunk]) -> int:
        """Parse the next event as JSON, or buffer its beginning; return where it ends."""
        blank = data.find(b"\n\n", position)
        after = len(data) if blank < 0 else blank + 2
        framed = data[position:after]
        held = self._events.held
        splitter = SseSplitter() if self._events is _EMPTY else self._events
        events = splitter.feed(framed)
        self._events = splitter if splitter.held or splitter.overflowed else _EMPTY
        for event in events:
            parsed = self._parsed(event)
            if not held and len(events) == 1 and parsed.pieces == 1:
                self._learn(framed, event.data, parsed)
            self._add_chunk(parsed, chunks)
            if self._failed:
                return len(data)
        if self._events.overflowed:
            text = f"an event of the stream is longer than {MAX_EVENT_BYTES >> 20} MiB"
            chunks.append(self._error(text))
            return len(data)
        return after

    def _parsed(self, event: SseEvent) -> ParsedEvent:
        """Parse an event's data according to its name: errors, keep-alives and events of other protocols are named."""
        data, name, remark = event
        if not data and not name:
            self._remark = remark if self._remark is not None else None
            return _NOTHING
        if name and is_error_name(name):
            return ParsedEvent(error=_reported(error_text(data).encode() if data.strip() else remark))
        if not name or name == _DEFAULT_NAME:
            return self._reader(data)
        if is_keep_alive(name) or data[:1] not in _JSON_STARTS:
            return _NOTHING
        parsed = self._reader(data)
        return _NOTHING if parsed.error is not None and is_notice(data) else parsed

    def _add_chunk(self, parsed: ParsedEvent, chunks: list[Chunk]) -> None:
        chunk = self._chunk(parsed)
        if chunk is not None:
            chunks.append(chunk)

    def _learn(self, framed: bytes, event: bytes, parsed: ParsedEvent) -> None:
        template = self._templates.learn(framed, event, parsed)
        if template is not None:
            self.expect(template)

    def _error(self, text: str) -> Chunk:
        self._failed = True
        self.stop_matching()
        return Chunk(error=text)

    def _chunk(self, parsed: ParsedEvent) -> Chunk | None:
        if parsed.error is not None:
            return self._error(parsed.error)
        if parsed.final and self._remark:
            return self._error(_reported(self._remark))
        usage, tokens = parsed.usage or _NO_USAGE, parsed.pieces
        if self._continuous and parsed.with_choice and usage.output is not None:
            tokens = max(0, usage.output - self.seen)
        if not tokens and not parsed.final and parsed.usage is None and not parsed.stops:
            return None
        if self._remark or parsed.final or parsed.stops:
            self._remark = None if parsed.final or parsed.stops else b""
        self.seen += tokens if self._continuous or self._ends_with_body else 0
        if parsed.pieces:
            self.reasoning = parsed.reasoning
            self.measure(len(parsed.text.encode("utf-8", "replace")))
        reasoning = self.reasoning and (tokens > 0 or parsed.pieces > 0)
        counts = (usage.prompt, usage.output, usage.cached)
        details = (usage.reasoning, parsed.reasoning_chars, parsed.timing)
        return Chunk(parsed.text, tokens, parsed.final, *counts, None, reasoning, *details, stops=parsed.stops)


def _reported(text: bytes) -> str:
    words = one_line(text.decode("utf-8", "replace")) or "an error without a message"
    return f"the server reports in the stream: {words}"
