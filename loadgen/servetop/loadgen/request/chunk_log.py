"""Arrival times and token counts of a response's chunks, in 4 bytes per chunk."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from servetop.core.arrays import FloatArray, IntArray
from servetop.core.units import US_PER_S

_MAX_GAP_US = (1 << 32) - 1
"""71 minutes; a longer gap is stored as this, as in a recording."""
_EXACT_COPY_CHUNKS = 4096
"""Up to this length the log is reallocated to its exact size as it grows; beyond, with room for a sixteenth more."""


class ChunkLog:
    """Gaps between chunks in whole microseconds, taken between rounded times so that rounding errors do not accumulate.

    Token counts use memory only after a chunk carried other than one token.
    """

    __slots__ = ("_counts", "_extra_tokens", "_first_at", "_gaps_us", "_last_us", "_uncertainties")

    def __init__(self) -> None:
        self._extra_tokens = 0
        """Tokens beyond one per chunk."""
        self._first_at = 0.0
        self._last_us = 0
        self._gaps_us = array("I")
        self._counts: array[int] | None = None
        self._uncertainties: array[float] | None = None

    def add(self, at: float, tokens: int) -> None:
        """Add a chunk of `tokens` tokens that arrived at run time `at` (seconds, not before the last chunk)."""
        gaps = self._gaps_us
        if not gaps:
            self._first_at = at
        us = round((at - self._first_at) * US_PER_S)
        gap = us - self._last_us
        gaps.append(gap if gap <= _MAX_GAP_US else _MAX_GAP_US)
        self._last_us = us
        self._extra_tokens += tokens - 1
        if self._counts is not None:
            self._counts.append(tokens)
        elif tokens != 1:
            self._counts = array("I", [1]) * len(gaps)
            self._counts[-1] = tokens

    def extend(self, times: Sequence[float]) -> None:
        """Add chunks of one token each; the log must not be empty."""
        first_at, last_us = self._first_at, self._last_us
        us = [round((at - first_at) * US_PER_S) for at in times]
        gaps = [after - before for before, after in zip((last_us, *us), us, strict=False)]
        try:
            more = array("I", gaps)
        except OverflowError:
            more = array("I", [min(gap, _MAX_GAP_US) for gap in gaps])
        if len(self._gaps_us) < _EXACT_COPY_CHUNKS:
            self._gaps_us = self._gaps_us + more
        else:
            self._gaps_us += more
        self._last_us = us[-1]
        if self._counts is not None:
            self._counts.extend([1] * len(us))

    def uniform_counts(self, tokens: int) -> IntArray | None:
        """Return equal token counts, the last one possibly smaller, that add up to `tokens`; None if there are none.

        At most one such count exists: tokens / chunks, rounded up.
        """
        chunks = len(self._gaps_us)
        each = -(-tokens // chunks) if chunks else 0
        last = tokens - each * (chunks - 1)
        if not 0 < last <= each:
            return None
        counts = np.full(chunks, each, dtype=np.int64)
        counts[-1] = last
        return counts

    def add_uncertainty(self, seconds: float, gaps: int) -> None:
        """Note that `gaps` gaps are known only to within `seconds`."""
        self._uncertainties = self._uncertainties or array("d")
        self._uncertainties.extend([seconds] * gaps)

    def take_uncertainties(self) -> array[float] | None:
        """Return and clear the uncertainty of each uncertain gap, in seconds; None if there are none."""
        uncertainties, self._uncertainties = self._uncertainties, None
        return uncertainties

    @property
    def last_at(self) -> float:
        """Run time of the last chunk, to the microsecond."""
        return self._first_at + self._last_us / US_PER_S

    @property
    def tokens(self) -> int:
        """Total tokens of all chunks."""
        return len(self._gaps_us) + self._extra_tokens

    def __len__(self) -> int:
        """Number of chunks so far."""
        return len(self._gaps_us)

    def tokens_at(self, position: int) -> int:
        """Token count of one chunk."""
        return 1 if self._counts is None else self._counts[position]

    def since(self, position: int) -> tuple[array[int], array[int] | None]:
        """Gaps (microseconds, 0 for the first chunk) and token counts of the chunks from `position` on.

        The counts are None if every chunk has one token.
        """
        return self._gaps_us[position:], None if self._counts is None else self._counts[position:]

    def times(self) -> FloatArray:
        """Run times of all chunks, shape (chunks,); the first is exact, the others to the microsecond."""
        times: FloatArray = self._first_at + np.cumsum(np.array(self._gaps_us, dtype=np.int64)) / US_PER_S
        return times

    def counts(self) -> IntArray:
        """Token counts of all chunks, shape (chunks,)."""
        if self._counts is None:
            return np.ones(len(self._gaps_us), dtype=np.int64)
        return np.array(self._counts, dtype=np.int64)


def spread_times(has_tokens: Sequence[bool], at: float, *, since: float, log: ChunkLog) -> Sequence[float]:
    """Return a time for each chunk of one read that ended at `at` and contains nothing that arrived before `since`.

    The kernel's timestamp is that of the last chunk. Chunks with tokens are spread evenly from the last one in the log,
    but not before `since`: a client that was delayed reads several chunks that arrived one after the other, and chunks
    that arrived together move apart by at most the time between two polls of the socket. The log notes the uncertainty
    of the gaps next to them.
    """
    count = sum(has_tokens)
    if count < 2:
        return [at] * len(has_tokens)
    last = log.last_at
    earliest = min(max(since, last), at)
    log.add_uncertainty(at - earliest, count)
    times, number = [], 0
    for carries_tokens in has_tokens:
        number += carries_tokens
        times.append(at if number == count else max(earliest, last + (at - last) * number / count))
    return times
