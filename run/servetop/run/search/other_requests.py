"""Which share of the requests that a server finished during a search are those of other clients, by its counters.

Both its requests and its tokens must exceed those of the search: an engine may count a request more than once.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np

from servetop.analysis.cells.attempts import session_starts
from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample, Note
from servetop.core.tick import Tick

_LEAST_SHARE, _FEWEST = 1 / 3, 5.0
"""Share of the requests and of the tokens, and number of requests, from which others are not an error of counting.

A client that waits for a processor records its own requests seconds late: of a saturated vLLM on the same two cores
15 % were missing. Half more than its own, as the trust meter asks for, is a third of all.
"""
_DELAY = 1.0
"""Seconds by which the client may see the end of a request after the server, or before a scrape that lasted."""


class OtherRequests:
    """Collects samples of the server and the ended requests of a search; `share` compares them."""

    def __init__(self) -> None:
        self._requests = self._tokens = 0.0
        self._last: EngineSample | None = None
        self._since: float | None = None
        """Start of the first scrape from which the counters are compared."""
        self._seams: list[float] = []
        self._done: FloatArray = np.empty(0)
        self._output: FloatArray = np.empty(0)

    def add(self, ticks: Sequence[Tick], notes: Sequence[Note]) -> None:
        """Add the samples of new ticks; what the server did between two sessions of the search does not count."""
        self._seams += session_starts(notes)
        for sample in (tick.engine for tick in ticks if tick.engine is not None):
            last = self._last
            if last is not None and sample.scrape_end <= last.scrape_end:
                continue
            if sample.requests_finished_total is None or sample.generation_tokens_total is None:
                continue
            self._last = sample
            if last is None:
                self._since = sample.scrape_start
            elif not self._is_seam(last, sample):
                self._requests += _increase(last.requests_finished_total, sample.requests_finished_total)
                self._tokens += _increase(last.generation_tokens_total, sample.generation_tokens_total)

    def add_ended(self, done: FloatArray, output_tokens: FloatArray) -> None:
        """Add requests that ended; NaN is unknown."""
        known = ~np.isnan(done)
        self._done = np.concatenate((self._done, done[known]))
        self._output = np.concatenate((self._output, np.nan_to_num(output_tokens[known])))

    def share(self, *, in_flight: int) -> float | None:
        """Return the share of the finished requests that are not from this search; None if none is known to be.

        `in_flight` requests of the search may have tokens that the server has counted already.
        """
        if self._since is None or self._last is None or not self._requests:
            return None
        own = (self._done >= self._since - _DELAY) & (self._done <= self._last.scrape_end + _DELAY)
        others = self._requests - float(own.sum())
        longest = float(self._output.max(initial=0.0))
        tokens = self._tokens - float(self._output[own].sum()) - in_flight * longest
        if others < max(_FEWEST, _LEAST_SHARE * self._requests) or tokens < _LEAST_SHARE * self._tokens:
            return None
        return others / self._requests

    def _is_seam(self, last: EngineSample, sample: EngineSample) -> bool:
        place = bisect.bisect_left(self._seams, last.scrape_start)
        return place < len(self._seams) and self._seams[place] <= sample.scrape_end


def _increase(before: float | None, after: float | None) -> float:
    """Return by how much a counter rose; 0 if it fell, since it was reset."""
    return max(0.0, (after or 0.0) - (before or 0.0))
