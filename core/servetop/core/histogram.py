"""Sparse log-bucket histograms: mergeable by addition, any percentile within 1 % of the true order statistic.

The buckets are DDSketch's (Masson, Rim, Lee: "DDSketch", VLDB 2019, section 2.1): with γ = (1 + α)/(1 - α),
value x lands in bucket ceil(log_γ(x / MIN_VALUE)), and 2·γ^i/(γ + 1) is within α of everything in bucket i.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from servetop.core.arrays import FloatArray, IntArray, NarrowArray, np

RELATIVE_ERROR = 0.01
"""α: the largest relative error of a percentile."""
MIN_VALUE = 1e-7
"""Seconds; smaller values, 0 and negative ones included, count in this bucket, number 0."""
MAX_BUCKET = 1400
"""γ^1400·MIN_VALUE is about 145,000 s; larger values count in this bucket."""

_GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_LOG_GAMMA = math.log(_GAMMA)


@functools.cache
def _midpoints() -> FloatArray:
    """Return the value in seconds that represents each bucket."""
    return np.asarray(MIN_VALUE * 2 * _GAMMA ** np.arange(MAX_BUCKET + 1) / (_GAMMA + 1), dtype=np.float64)


def bucket_value(bucket: int) -> float:
    """Return the value in seconds that represents a bucket."""
    return float(_midpoints()[bucket])


def bucket_values(buckets: NarrowArray) -> FloatArray:
    """Return the values in seconds that represent several buckets; shape as `buckets`."""
    return _midpoints()[buckets]


@dataclass(frozen=True, slots=True, eq=False)
class LogHistogram:
    """Counts of durations (seconds) by bucket; immutable, sparse, exact in count and sum."""

    buckets: NarrowArray
    """Ascending numbers of the non-empty buckets; from a recording, as narrow as in the file."""
    counts: IntArray
    """One count (≥ 1) for each of `buckets`; from a recording, as narrow as in the file, and unsigned."""
    total: float
    """Exact sum of the values in seconds, not of the buckets' midpoints."""

    @classmethod
    def of(
        cls,
        values: Sequence[float] | FloatArray,
        *,
        weights: Sequence[int] | IntArray | None = None,
    ) -> LogHistogram:
        """Build a histogram from values in seconds and their weights (default 1)."""
        seconds = np.asarray(values, dtype=np.float64)
        if seconds.size == 0:
            return EMPTY
        times = np.ones(seconds.size, dtype=np.int64) if weights is None else np.asarray(weights, dtype=np.int64)
        clipped = np.maximum(seconds, MIN_VALUE)
        numbers = np.ceil(np.log(clipped / MIN_VALUE) / _LOG_GAMMA).astype(np.int32)
        dense = np.bincount(np.minimum(numbers, MAX_BUCKET), weights=times).astype(np.int64)
        buckets = np.flatnonzero(dense).astype(np.int32)
        return cls(buckets, dense[buckets], float(np.dot(seconds, times)))

    @classmethod
    def merged(cls, histograms: Iterable[LogHistogram]) -> LogHistogram:
        """Return the sum of histograms: the histogram of all their values."""
        parts = [part for part in histograms if part.buckets.size]
        if len(parts) < 2:
            return parts[0] if parts else EMPTY
        numbers = np.concatenate([part.buckets for part in parts])
        dense = np.bincount(numbers, weights=np.concatenate([part.counts for part in parts])).astype(np.int64)
        buckets = np.flatnonzero(dense).astype(np.int32)
        return cls(buckets, dense[buckets], math.fsum(part.total for part in parts))

    @property
    def count(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Exact mean in seconds; NaN if empty."""
        return self.total / self.count if self.counts.size else math.nan

    def percentile(self, q: float) -> float:
        """The q-th percentile (0-100) in seconds, by linear interpolation between order statistics; NaN if empty."""
        return self.percentiles(q)[0]

    def percentiles(self, *qs: float) -> tuple[float, ...]:
        """Several percentiles, as `percentile`, at the cost of one."""
        if not self.counts.size:
            return (math.nan,) * len(qs)
        cumulative = np.cumsum(self.counts)
        ranks = [q / 100 * (int(cumulative[-1]) - 1) for q in qs]
        edges = [edge for rank in ranks for edge in (math.floor(rank), math.ceil(rank))]
        values = bucket_values(self.buckets[np.searchsorted(cumulative, edges, side="right")]).tolist()
        return tuple(
            below + (above - below) * (rank - math.floor(rank))
            for rank, below, above in zip(ranks, values[::2], values[1::2], strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LogHistogram)
            and np.array_equal(self.buckets, other.buckets)
            and np.array_equal(self.counts, other.counts)
            and math.isclose(self.total, other.total, rel_tol=1e-12)
        )

    def __hash__(self) -> int:
        return hash((*self.buckets.tolist(), *self.counts.tolist()))


class _EmptyHistogram(LogHistogram):
    """The empty histogram; its arrays are created on first use, because a tick without load needs none."""

    __slots__ = ()

    def __init__(self) -> None:
        object.__setattr__(self, "total", 0.0)

    def __getattr__(self, name: str) -> Any:
        if name not in ("buckets", "counts"):
            raise AttributeError(name)
        object.__setattr__(self, "buckets", np.empty(0, np.int32))
        object.__setattr__(self, "counts", np.empty(0, np.int64))
        return getattr(self, name)


EMPTY: LogHistogram = _EmptyHistogram()
