"""Stream parser (server-sent events): regular events by their template, all others by a JSON parse."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.event_template import TemplateCache
from servetop.engines.dialects.fast_path import FastEventMatcher
from servetop.engines.dialects.json_event import ParsedEvent, Reader, Usage
from servetop.engines.dialects.sse import MAX_EVENT_BYTES, SseSplitter

_UNTOLD = Usage()
_NOTHING_HELD = SseSplitter()
"""Of all streams: most of the time none of them is in the middle of an event. It is never fed."""
_ENDED = (Chunk(final=True),)


class EventStream(FastEventMatcher):
    """Parses the events of one response to chunks; an event without tokens, counts, error or end gives none.

    With `continuous` the tokens of an event are the rise of the server's own count. `shapes` are the templates shared
    by all streams of a server; without them every event is parsed as JSON. `ends_with_body` is for dialects without an
    end marker: a body that ends regularly, after at least one token, is complete. The class inherits from
    FastEventMatcher instead of owning one, because there are thousands of streams.
    """

    __slots__ = ("_broken", "_ends_with_body", "_events", "_reader")

    def __init__(
        self,
        reader: Reader,
        shapes: TemplateCache | None,
        *,
        continuous: bool,
        keep_texts: bool = True,
        ends_with_body: bool = False,
    ) -> None:
        super().__init__(shapes or TemplateCache(reader, learns=False), continuous=continuous, keep_texts=keep_texts)
        self._reader = reader
        self._ends_with_body = ends_with_body
        self._events = _NOTHING_HELD
        self._broken = False

    def feed(self, data: bytes) -> Sequence[Chunk]:
        """Return the chunks that these bytes complete; none after a chunk with `error`."""
        if not self._events.held and (lone := self.one(data)) is not None:
            return lone
        chunks: list[Chunk] = []
        if self._broken:
            return chunks
        if self._events.held and (b"\n" in data or b"\r" in data):
            data = self._events.take_back() + data
        position, size = 0, len(data)
        while position < size:
            if not self._events.held:
                position = self.take(data, position, chunks)
            if position < size:
                position = self._read_one(data, position, chunks)
        return chunks

    def finish(self) -> Sequence[Chunk]:
        in_order = not self._broken and not self._events.held and (self.seen > 0 or self.met)
        return _ENDED if self._ends_with_body and in_order else ()

    def frame_literals(self) -> tuple[bytes, bytes] | None:
        return self._edges if self._told and not self._events.held else None

    def _read_one(self, data: bytes, position: int, chunks: list[Chunk]) -> int:
        """Read the next event exactly, or hold its beginning; where it ends."""
        blank = data.find(b"\n\n", position)
        after = len(data) if blank < 0 else blank + 2
        framed = data[position:after]
        held = self._events.held
        splitter = SseSplitter() if self._events is _NOTHING_HELD else self._events
        events = splitter.feed(framed)
        self._events = splitter if splitter.held or splitter.overflowed else _NOTHING_HELD
        for event in events:
            reading = self._reader(event)
            if not held and len(events) == 1 and reading.pieces == 1:
                self._learn(framed, event, reading)
            chunk = self._chunk(reading)
            if chunk is not None:
                chunks.append(chunk)
            if self._broken:
                return len(data)
        if self._events.overflowed:
            words = f"an event of the stream is longer than {MAX_EVENT_BYTES >> 20} MiB"
            chunks.append(self._error(words))
            return len(data)
        return after

    def _learn(self, framed: bytes, event: bytes, reading: ParsedEvent) -> None:
        shape = self._shapes.learn(framed, event, reading)
        if shape is not None:
            self.adopt(shape)

    def _error(self, words: str) -> Chunk:
        self._broken = True
        self.stop()
        return Chunk(error=words)

    def _chunk(self, reading: ParsedEvent) -> Chunk | None:
        if reading.error is not None:
            return self._error(reading.error)
        usage, tokens = reading.usage or _UNTOLD, reading.pieces
        if self._continuous and reading.within and usage.output is not None:
            tokens = max(0, usage.output - self.seen)
        if not tokens and not reading.final and reading.usage is None and not reading.stops:
            return None
        self.seen += tokens if self._continuous or self._ends_with_body else 0
        if reading.pieces:
            self.reasoning = reading.reasoning
            self.measure(len(reading.text.encode("utf-8", "replace")))
        reasoning = self.reasoning and (tokens > 0 or reading.pieces > 0)
        counts = (usage.prompt, usage.output, usage.cached)
        told = (usage.reasoning, reading.reasoning_chars, reading.timing)
        return Chunk(reading.text, tokens, reading.final, *counts, None, reasoning, *told, stops=reading.stops)
