"""A lower bound on the hit rate of an engine that reports none: the time to first token by position of the prefix.

The first use of a prefix computes the whole prompt; later uses compute what is not cached. Both wait in the same queue
at the same time, so that the saving of a later use, as a fraction of the time of a first use, is at most the fraction
of the prompt that was cached: the rest of both times is the same, and the cost of a token grows with its place in the
prompt, while the cached tokens are the first ones. It holds for the time in which prefixes are used for the first time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.statistics.student_t import quantile
from servetop.core.arrays import BoolArray, FloatArray, IntArray

CONFIDENCE = 0.975
"""Probability that the hit rate is not below the bound."""
GROUP = 4
"""First uses, and at least as many later uses among them, of which one mean each is taken: they share their delays."""
MIN_GROUPS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefixUses:
    """Requests that begin with a shared prefix; arrays of shape (requests,)."""

    sent: FloatArray
    """Seconds since the start of the run."""
    ttft: FloatArray
    """Seconds from sending to the first token."""
    first: BoolArray
    """Whether it was the first to use its prefix since the cache was empty."""

    def hit_rate_at_least(self) -> float:
        """Return the bound for the fraction of all prompt tokens that were cached; NaN with too few first uses.

        0 means that later uses are not known to be faster: the engine may have no cache, a warm one, or a long queue.
        """
        saved = self._saved_fractions()
        if saved.size < MIN_GROUPS:
            return math.nan
        error = float(saved.std(ddof=1)) / math.sqrt(saved.size)
        bound = float(saved.mean()) - quantile(CONFIDENCE, saved.size - 1) * error
        return max(0.0, bound) * float(1 - self.first.mean())

    def _saved_fractions(self) -> FloatArray:
        """Return what later uses save of the mean time of the first uses among them, one value per group."""
        order = np.argsort(self.sent, kind="stable")
        first, ttft = self.first[order], self.ttft[order]
        before: IntArray = np.cumsum(first) - first
        group = before // GROUP
        counts = np.bincount(group[~first], minlength=int(first.sum()) // GROUP + 1)
        sums = [np.bincount(group[each], weights=ttft[each], minlength=counts.size) for each in (first, ~first)]
        whole = np.flatnonzero(np.bincount(group[first], minlength=counts.size) == GROUP)
        enough = whole[counts[whole] >= GROUP]
        return np.asarray(1 - (sums[1][enough] / counts[enough]) / (sums[0][enough] / GROUP))
