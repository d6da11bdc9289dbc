"""Fast path: matches regular events by their bytes, at a fraction of the cost of a JSON parse."""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

from servetop.core.interfaces.dialect import Chunk
from servetop.engines.dialects.counted_events import CountedTail
from servetop.engines.dialects.event_template import TEXT, EventTemplate, TemplateCache

_NEVER = b"a"
"""Placeholder for unknown literals. A letter, because TEXT matches letters: no tail can start with one."""
_NO_EDGES = (_NEVER, _NEVER)
_CONTENT, _REASONING = Chunk(tokens=1), Chunk(tokens=1, reasoning=True)
_SINGLE_CONTENT, _SINGLE_REASONING = (_CONTENT,), (_REASONING,)
_NO_COUNTS: tuple[int | None, ...] = (None, None, None)
_match_text, _fullmatch_text = TEXT.match, TEXT.fullmatch
_MAX_MISSES = 8


class FastEventMatcher:
    """Consumes events of known templates from the front of a stream's bytes, and counts their tokens.

    The first event of a stream that matches a template gives the literal bytes (id, creation time) that the stream's
    other events repeat.
    """

    __slots__ = (
        "_continuous",
        "_counts",
        "_edges",
        "_keep_texts",
        "_literals_known",
        "_misses",
        "_repeated",
        "_short_size",
        "_single",
        "_tail",
        "_template",
        "_templates",
        "_text_size",
        "reasoning",
        "seen",
    )

    def __init__(self, templates: TemplateCache, *, continuous: bool, keep_texts: bool) -> None:
        self.seen = 0
        """Tokens of the completion so far, of continuous streams only; the caller adds those of other events."""
        self.reasoning = False
        """The last text was reasoning."""
        self._templates = templates
        self._continuous = continuous
        self._keep_texts = keep_texts
        self._template: EventTemplate | None = None
        self._edges = _NO_EDGES
        """The literal head and tail of this stream's events of the current template."""
        self._literals_known = False
        """Events can be matched by their literals."""
        self._tail: CountedTail | None = None
        """The tail of a template with counts."""
        self._text_size = 0
        """Size of each text so far in bytes, except a shorter last one; 0: no text yet; -1: the sizes differ."""
        self._short_size = 0
        """Size of the last text if it is shorter; else 0."""
        self._misses = 0
        """Number of unexpected events between the literals."""
        self._single = _SINGLE_CONTENT
        self._repeated: list[bytes | None] | None = None
        self._counts = _NO_COUNTS

    def expect(self, template: EventTemplate) -> None:
        """Expect events of this template next."""
        self._template = template
        self._edges, self._literals_known, self._tail = _NO_EDGES, False, None
        self._single = _SINGLE_REASONING if template.reasoning else _SINGLE_CONTENT

    @property
    def has_matched(self) -> bool:
        """An event of the current template has been seen."""
        return self._edges[0] is not _NEVER

    def stop_matching(self) -> None:
        """Stop matching events by their literals."""
        self._literals_known = False

    def equal_text_sizes(self) -> tuple[int, int] | None:
        return (self._text_size, self._short_size or self._text_size) if self._text_size > 0 else None

    def measure(self, size: int) -> None:
        """Record the size of the next text in bytes."""
        if self._text_size == size and not self._short_size:
            return
        if not self._text_size:
            self._text_size = size
        elif size > self._text_size or self._short_size:
            self._text_size = -1
        else:
            self._short_size = size

    def match_one(self, data: bytes) -> tuple[Chunk] | None:
        """Match bytes that are exactly one event with the known literals, as most reads are; else None."""
        if not self._literals_known or self._tail is not None:
            return None
        head, tail = self._edges
        if (
            data.startswith(head)
            and data.endswith(tail)
            and len(data) > len(head) + len(tail)
            and _is_utf8(data)
            and _fullmatch_text(data, len(head), len(data) - len(tail))
        ):
            if self._continuous:
                self.seen += 1
            if self._text_size >= 0:
                self.measure(len(data) - len(head) - len(tail))
            self.reasoning = self._single[0].reasoning
            return self._single
        return None

    def match_frames(self, middles: Sequence[bytes]) -> Chunk | None:
        """Match events with these bytes between the literals; None if one does not match.

        The texts are checked as one, joined by blanks so that no escape can span two of them.
        """
        texts = middles
        if self._tail is not None:
            stripped = self._tail.texts(middles, self.seen)
            if stripped is None or not (self._may_lack_text or all(stripped)):
                self._misses += 1
                self._literals_known = self._literals_known and self._misses < _MAX_MISSES
                return None
            texts = stripped
        text = b" ".join(texts)
        if not self._literals_known or not _is_utf8(text) or not _fullmatch_text(text):
            return None
        if self._continuous or self._tail is not None:
            self.seen += len(middles)
        for each in texts if self._text_size >= 0 else ():
            self.measure(len(each))
        self.reasoning = self._single[0].reasoning
        if self._tail is not None:
            return self._tail.last(self.seen, reasoning=self.reasoning)
        return self._single[0]

    @property
    def _may_lack_text(self) -> bool:
        """Whether an event that adds one to the server's count is one token of the current kind, with text or without.

        Part of a character decodes to no text yet.
        """
        return self._continuous and self.reasoning == self._single[0].reasoning

    def match_events(self, data: bytes, position: int, chunks: list[Chunk]) -> int:
        """Append the chunks of the regular events from `position`, the start of an event; return where they end."""
        known = self._templates.known
        if self._template is None:
            if not known:
                return position
            self.expect(known[0])
        while (position := self._match_run(data, position, chunks)) < len(data) and len(known) > 1:
            other = next((each for each in known if each is not self._template and each.matches(data, position)), None)
            if other is None:
                break
            before = position
            self.expect(other)
            position = self._match_run(data, position, chunks)
            if position == before:
                break
        return position

    def _match_run(self, data: bytes, position: int, chunks: list[Chunk]) -> int:
        """Match consecutive events of the current template; return where they end."""
        template, (head, tail), size = self._template, self._edges, len(data)
        if template is None:
            return position
        decode = self._keep_texts or not data.isascii()
        while position < size:
            known = head is not _NEVER and data.startswith(head, position)
            start = position + len(head) if known else self._text_start(data, position)
            if start < 0:
                break
            end = _match_text(data, start).end()  # type: ignore[union-attr]  # it also matches the empty text
            if not template.counted and data.startswith(tail, end):
                after, counts = end + len(tail), None
            else:
                counts = template.tail.match(data, end)
                if counts is None:
                    break
                after = counts.end()
            text = _decoded(data[start:end]) if decode else ""
            if text is None:
                break
            if head is _NEVER:
                head, tail = self._edges = data[position:start], template.shared(data[end:after])
                self._literals_known = not (template.counted or self._keep_texts)
            if template.counted and counts is not None:
                chunks.append(self._counted(counts, text, has_text=end > start))
            elif end > start:
                chunks.append(self._uncounted(text, end - start))
            position = after
        return position

    def _uncounted(self, text: str, size: int) -> Chunk:
        """Return the chunk of an event whose text counts as one token."""
        self.seen += self._continuous
        if self._text_size >= 0:
            self.measure(size)
        token = self._single[0]
        self.reasoning = token.reasoning
        return token._replace(text=text) if self._keep_texts else token

    def _expect_counts(self, counts: re.Match[bytes], chunk: Chunk) -> None:
        """Expect more events with this tail and increasing counts."""
        low, high = counts.span("output")
        before = counts.start()
        self._tail = CountedTail(counts[0], (low - before, high - before), last=chunk)
        self._edges = self._edges[0], self._tail.suffix
        self._literals_known = True

    def _text_start(self, data: bytes, position: int) -> int:
        """Return where the text of an event without the literal head starts; -1 if the head does not match."""
        found = self._template.head.match(data, position) if self._template is not None else None
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
        if has_text and self._template is not None:
            self.reasoning = self._template.reasoning
        prompt, cached, reasoning_tokens = self._counts
        kept = text if self._keep_texts else ""
        reasoning = self.reasoning and (tokens > 0 or has_text)
        chunk = Chunk(kept, tokens, False, prompt, total, cached, None, reasoning, reasoning_tokens)
        if self._tail is None and total is not None and not self._keep_texts:
            self._expect_counts(counts, chunk)
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
    """Decode the text between the quotes; None if it is not valid UTF-8."""
    try:
        return raw.decode() if b"\\" not in raw else orjson.loads(b'"%b"' % raw)
    except ValueError:
        return None
