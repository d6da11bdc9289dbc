"""The end of events with the server's counts: constant bytes, except numbers that rise by one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from servetop.core.interfaces.dialect import Chunk

_TOTAL = re.compile(rb'"total_tokens": ?(\d+)')


class CountedTail:
    """Of one stream, made from the end of one of its events; an event whose end differs otherwise is none of its own.

    The output tokens are one more with each event, and so is the total, where there is one.
    """

    __slots__ = ("_beyond", "_format", "_last", "suffix")

    def __init__(self, tail: bytes, output: tuple[int, int], *, last: Chunk) -> None:
        """`output` is where the output tokens stand in the tail; `last` is what its event said, without text."""
        self._last = last
        total = _TOTAL.search(tail)
        holes = [output]
        beyond = [0]
        prompt = last.prompt_tokens or 0
        if total is not None and int(total[1]) == prompt + (last.output_tokens or 0):
            position = int(total.start() > output[0])
            holes.insert(position, total.span(1))
            beyond.insert(position, prompt)
        self._beyond = tuple(beyond)
        """Difference between each number and the output tokens."""
        literals, at = [], 0
        for low, high in holes:
            literals.append(tail[at:low].replace(b"%", b"%%"))
            at = high
        self._format = b"%d".join([*literals, b""])
        self.suffix = tail[at:]
        """The bytes after the last number."""

    def texts(self, middles: Sequence[bytes], seen: int) -> list[bytes] | None:
        """Return the bytes before each tail; None unless the tails count up by one token from `seen`."""
        form, found, count = self._format, [], seen
        first, second = self._beyond[0], self._beyond[-1]
        single = len(self._beyond) == 1
        for middle in middles:
            count += 1
            tail = form % count if single else form % (count + first, count + second)
            if not middle.endswith(tail):
                return None
            found.append(middle[: -len(tail)])
        return found

    def last(self, count: int, *, reasoning: bool) -> Chunk:
        """Return the chunk of the event that reports `count` output tokens."""
        return self._last._replace(tokens=1, output_tokens=count, reasoning=reasoning)
