"""When an answer's chunks came and how many tokens each brought, in 4 bytes a chunk."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from servetop.core.arrays import FloatArray, IntArray
from servetop.core.units import US_PER_S

_MAX_GAP_US = (1 << 32) - 1
"""71 minutes; a longer gap is cut to that, as in a recording."""
_COPIED = 4096
"""Chunks up to which the log is copied to its exact size as it grows; beyond, it has room for a sixteenth more."""


class ChunkLog:
    """Gaps in whole microseconds, each of the rounded instants, so that no error accumulates.

    Token counts take room only once a chunk brings other than one token.
    """

    __slots__ = ("_counts", "_doubts", "_first", "_gaps_us", "_last_us", "_surplus")

    def __init__(self) -> None:
        self._surplus = 0
        """Tokens beyond one a chunk."""
        self._first = 0.0
        self._last_us = 0
        self._gaps_us = array("I")
        self._counts: array[int] | None = None
        self._doubts: array[float] | None = None

    def add(self, at: float, tokens: int) -> None:
        """A chunk that came at run time `at` (seconds, not before the one before) with so many tokens."""
        gaps = self._gaps_us
        if not gaps:
            self._first = at
        us = round((at - self._first) * US_PER_S)
        gap = us - self._last_us
        gaps.append(gap if gap <= _MAX_GAP_US else _MAX_GAP_US)
        self._last_us = us
        self._surplus += tokens - 1
        if self._counts is not None:
            self._counts.append(tokens)
        elif tokens != 1:
            self._counts = array("I", [1]) * len(gaps)
            self._counts[-1] = tokens

    def extend(self, instants: Sequence[float]) -> None:
        """Chunks of one token each; there must have been one before."""
        first, last = self._first, self._last_us
        us = [round((at - first) * US_PER_S) for at in instants]
        gaps = [after - before for before, after in zip((last, *us), us, strict=False)]
        try:
            more = array("I", gaps)
        except OverflowError:
            more = array("I", [min(gap, _MAX_GAP_US) for gap in gaps])
        if len(self._gaps_us) < _COPIED:
            self._gaps_us = self._gaps_us + more
        else:
            self._gaps_us += more
        self._last_us = us[-1]
        if self._counts is not None:
            self._counts.extend([1] * len(us))

    def even_counts(self, tokens: int) -> IntArray | None:
        """As many tokens for every chunk, but for the last, which gets what is left, so that they add up; None: no way.

        There is at most one such number: tokens / chunks, rounded up.
        """
        chunks = len(self._gaps_us)
        each = -(-tokens // chunks) if chunks else 0
        last = tokens - each * (chunks - 1)
        if not 0 < last <= each:
            return None
        counts = np.full(chunks, each, dtype=np.int64)
        counts[-1] = last
        return counts

    def doubt(self, seconds: float, gaps: int) -> None:
        """So many gaps are known within so much."""
        self._doubts = self._doubts or array("d")
        self._doubts.extend([seconds] * gaps)

    def take_doubts(self) -> array[float] | None:
        """The seconds of each doubtful gap since the last call; None where there was none."""
        doubts, self._doubts = self._doubts, None
        return doubts

    @property
    def last(self) -> float:
        """Run time of the last chunk, to the microsecond."""
        return self._first + self._last_us / US_PER_S

    @property
    def tokens(self) -> int:
        """Of all chunks."""
        return len(self._gaps_us) + self._surplus

    def __len__(self) -> int:
        """Chunks so far."""
        return len(self._gaps_us)

    def count(self, position: int) -> int:
        """Tokens of one chunk."""
        return 1 if self._counts is None else self._counts[position]

    def since(self, position: int) -> tuple[array[int], array[int] | None]:
        """From there on: microseconds between each chunk and the one before it (0 for the first), and its tokens.

        The tokens are None where all have one.
        """
        return self._gaps_us[position:], None if self._counts is None else self._counts[position:]

    def times(self) -> FloatArray:
        """Run times of all chunks, shape (chunks,); the first is exact, the others to the microsecond."""
        times: FloatArray = self._first + np.cumsum(np.array(self._gaps_us, dtype=np.int64)) / US_PER_S
        return times

    def counts(self) -> IntArray:
        """Tokens of all chunks, shape (chunks,)."""
        if self._counts is None:
            return np.ones(len(self._gaps_us), dtype=np.int64)
        return np.array(self._counts, dtype=np.int64)
