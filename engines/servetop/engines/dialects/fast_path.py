"""Fast path: matches regular events by their bytes, at a fraction of the cost of a JSON parse."""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.counted_events import CountedTail
from servetop.engines.dialects.event_template import TEXT, EventTemplate, TemplateCache

_NEVER = b"a"
"""Placeholder for unknown edges. A letter, because TEXT matches letters: no tail can start with one."""
_NO_EDGES = (_NEVER, _NEVER)
_TOKEN, _THOUGHT = Chunk(tokens=1), Chunk(tokens=1, reasoning=True)
_LONE_TOKEN, _LONE_THOUGHT = (_TOKEN,), (_THOUGHT,)
_NO_COUNTS: tuple[int | None, ...] = (None, None, None)
_text, _whole_text = TEXT.match, TEXT.fullmatch
_MOST_MISSES = 8


class FastEventMatcher:
    """Consumes events of known templates from the front of a stream's bytes, and counts their tokens.

    A stream's own first event of a shape gives it the literal bytes (identity, creation time) that its others repeat.
    """

    __slots__ = (
        "_continuous", "_counts", "_edges", "_keep_texts", "_lone", "_misses", "_odd", "_repeated", "_shape", "_shapes",
        "_tail", "_text_size", "_told", "reasoning", "seen",
    )  # fmt: skip

    def __init__(self, shapes: TemplateCache, *, continuous: bool, keep_texts: bool) -> None:
        self.seen = 0
        """Tokens of the answer so far, of continuous streams only; whoever reads other events adds theirs."""
        self.reasoning = False
        """The last text was the model's reasoning."""
        self._shapes = shapes
        self._continuous = continuous
        self._keep_texts = keep_texts
        self._shape: EventTemplate | None = None
        self._edges = _NO_EDGES
        """Head and tail of the stream's own events of the shape in hand."""
        self._told = False
        """A single event can be matched by the literals."""
        self._tail: CountedTail | None = None
        """Of a shape with counts."""
        self._text_size = 0
        """Bytes of each text so far; 0: there was none yet; -1: they differ."""
        self._odd = False
        """The last text had another length."""
        self._misses = 0
        """Number of unexpected events between the literals."""
        self._lone = _LONE_TOKEN
        self._repeated: list[bytes | None] | None = None
        self._counts = _NO_COUNTS

    def adopt(self, shape: EventTemplate) -> None:
        """Expect events of this template next."""
        self._shape = shape
        self._edges, self._told, self._tail = _NO_EDGES, False, None
        self._lone = _LONE_THOUGHT if shape.reasoning else _LONE_TOKEN

    @property
    def met(self) -> bool:
        """An event of the current template has been seen."""
        return self._edges[0] is not _NEVER

    def stop(self) -> None:
        """Stop matching events by their literals."""
        self._told = False

    def has_equal_text_sizes(self) -> bool:
        return self._text_size > 0

    def measure(self, size: int) -> None:
        """Record the size of the next text in bytes."""
        if self._odd:
            self._text_size = -1
        elif not self._text_size:
            self._text_size = size
        else:
            self._odd = size != self._text_size

    def one(self, data: bytes) -> tuple[Chunk] | None:
        """Match bytes that are one event like the first of its template, as most reads are; else None."""
        if not self._told or self._tail is not None:
            return None
        head, tail = self._edges
        if (
            data.startswith(head)
            and data.endswith(tail)
            and len(data) > len(head) + len(tail)
            and _is_utf8(data)
            and _whole_text(data, len(head), len(data) - len(tail))
        ):
            if self._continuous:
                self.seen += 1
            if self._text_size >= 0:
                self.measure(len(data) - len(head) - len(tail))
            self.reasoning = self._lone[0].reasoning
            return self._lone
        return None

    def match_frames(self, middles: Sequence[bytes]) -> Chunk | None:
        """Consume events with these middles. A blank between texts keeps an escape from spanning two of them."""
        texts = middles
        if self._tail is not None:
            told = self._tail.texts(middles, self.seen)
            if told is None or not all(told):
                self._misses += 1
                self._told = self._told and self._misses < _MOST_MISSES
                return None
            texts = told
        text = b" ".join(texts)
        if not self._told or not _is_utf8(text) or not _whole_text(text):
            return None
        if self._continuous or self._tail is not None:
            self.seen += len(middles)
        for each in texts if self._text_size >= 0 else ():
            self.measure(len(each))
        self.reasoning = self._lone[0].reasoning
        if self._tail is not None:
            return self._tail.last(self.seen, reasoning=self.reasoning)
        return self._lone[0]

    def take(self, data: bytes, position: int, chunks: list[Chunk]) -> int:
        """Append the chunks of the regular events from `position`, the beginning of an event; where they end."""
        known = self._shapes.known
        if self._shape is None:
            if not known:
                return position
            self.adopt(known[0])
        while (position := self._run(data, position, chunks)) < len(data) and len(known) > 1:
            other = next((each for each in known if each is not self._shape and each.fits(data, position)), None)
            if other is None:
                break
            before = position
            self.adopt(other)
            position = self._run(data, position, chunks)
            if position == before:
                break
        return position

    def _run(self, data: bytes, position: int, chunks: list[Chunk]) -> int:
        """The events of the shape in hand, one after the other."""
        shape, (head, tail), size = self._shape, self._edges, len(data)
        if shape is None:
            return position
        worded = self._keep_texts or not data.isascii()
        while position < size:
            known = head is not _NEVER and data.startswith(head, position)
            start = position + len(head) if known else self._start(data, position)
            if start < 0:
                break
            end = _text(data, start).end()  # type: ignore[union-attr]  # it matches nothing at all, too
            if not shape.counted and data.startswith(tail, end):
                after, counts = end + len(tail), None
            else:
                counts = shape.tail.match(data, end)
                if counts is None:
                    break
                after = counts.end()
            text = _decoded(data[start:end]) if worded else ""
            if text is None:
                break
            if head is _NEVER:
                head, tail = self._edges = data[position:start], shape.shared(data[end:after])
                self._told = not (shape.counted or self._keep_texts)
            if shape.counted and counts is not None:
                chunks.append(self._counted(counts, text, has_text=end > start))
            elif end > start:
                chunks.append(self._by_text(text, end - start))
            position = after
        return position

    def _by_text(self, text: str, size: int) -> Chunk:
        """Return the chunk of an event whose text counts as one token."""
        self.seen += self._continuous
        if self._text_size >= 0:
            self.measure(size)
        token = self._lone[0]
        self.reasoning = token.reasoning
        return token._replace(text=text) if self._keep_texts else token

    def _follow(self, counts: re.Match[bytes], chunk: Chunk) -> None:
        """Expect more events with such a tail, whose counts go up."""
        low, high = counts.span("output")
        before = counts.start()
        self._tail = CountedTail(counts[0], (low - before, high - before), last=chunk)
        self._edges = self._edges[0], self._tail.suffix
        self._told = True

    def _start(self, data: bytes, position: int) -> int:
        """Return where the text starts in an event that differs from the first one; -1 if its head does not match."""
        found = self._shape.head.match(data, position) if self._shape is not None else None
        return -1 if found is None else found.end()

    def _counted(self, counts: re.Match[bytes], text: str, *, has_text: bool) -> Chunk:
        output, *repeated = counts.group("output", "prompt", "cached", "reasoning")
        if repeated != self._repeated:
            self._repeated = repeated
            self._counts = tuple(None if digits is None else int(digits) for digits in repeated)
        total = None if output is None else int(output)
        tokens = int(has_text)
        if self._continuous and total is not None:
            tokens = max(0, total - self.seen)
        self.seen += tokens
        if has_text and self._shape is not None:
            self.reasoning = self._shape.reasoning
        known, found, thoughts = self._counts
        kept = text if self._keep_texts else ""
        reasoning = self.reasoning and (tokens > 0 or has_text)
        chunk = Chunk(kept, tokens, False, known, total, found, None, reasoning, thoughts)
        if self._tail is None and total is not None and not self._keep_texts:
            self._follow(counts, chunk)
        return chunk


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decoded(raw: bytes) -> str | None:
    """The text between the quotes; None when it is no UTF-8."""
    try:
        return raw.decode() if b"\\" not in raw else orjson.loads(b'"%b"' % raw)
    except ValueError:
        return None
