"""Matches the ends of events that carry token counts: constant bytes, except for numbers that increase by one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from servetop.core.interfaces.dialect import Chunk

_TOTAL = re.compile(rb'"total_tokens": ?(\d+)')


class CountedTail:
    """The end of one stream's events after the text, learned from one of them.

    Each event has one more output token than the last, and so has the total, if present. Nothing else may differ.
    """

    __slots__ = ("_format", "_last", "_offsets", "suffix")

    def __init__(self, tail: bytes, output: tuple[int, int], *, last: Chunk) -> None:
        """`output` is the span of the output token count in the tail; `last` is the chunk of its event."""
        self._last = last
        total = _TOTAL.search(tail)
        spans = [output]
        offsets = [0]
        prompt = last.prompt_tokens or 0
        if total is not None and int(total[1]) == prompt + (last.output_tokens or 0):
            position = int(total.start() > output[0])
            spans.insert(position, total.span(1))
            offsets.insert(position, prompt)
        self._offsets = tuple(offsets)
        """Each number minus the output tokens."""
        literals, at = [], 0
        for low, high in spans:
            literals.append(tail[at:low].replace(b"%", b"%%"))
            at = high
        self._format = b"%d".join([*literals, b""])
        self.suffix = tail[at:]
        """The bytes after the last number."""

    def texts(self, middles: Sequence[bytes], seen: int) -> list[bytes] | None:
        """Return the bytes before each tail; None unless the tails count up by one token from `seen`."""
        template, texts, count = self._format, [], seen
        first, second = self._offsets[0], self._offsets[-1]
        single = len(self._offsets) == 1
        for middle in middles:
            count += 1
            tail = template % count if single else template % (count + first, count + second)
            if not middle.endswith(tail):
                return None
            texts.append(middle[: -len(tail)])
        return texts

    def last(self, count: int, *, reasoning: bool) -> Chunk:
        """Return the chunk of the event that reports `count` output tokens."""
        return self._last._replace(tokens=1, output_tokens=count, reasoning=reasoning)
