"""A log-bucket histogram as the cumulative counts of fixed buckets."""

from __future__ import annotations

import functools

from servetop.core.arrays import NarrowArray, np
from servetop.core.histogram import LogHistogram
from servetop.run.exporter.live_metric import BucketCounts


def bucket_counts(histogram: LogHistogram, bounds: tuple[float, ...]) -> BucketCounts:
    """Return the counts of values up to each bound, and of all; `bounds` ascend.

    A value that is equal to a bound counts below it, and one up to 2 % larger may: the width of a log bucket. The count
    and the sum of all values are exact.
    """
    cumulative = np.concatenate([[0], np.cumsum(histogram.counts, dtype=np.int64)])
    ends = np.searchsorted(histogram.buckets, _last_buckets(bounds), side="right")
    return BucketCounts(counts=[*cumulative[ends].tolist(), int(cumulative[-1])], total=float(histogram.total))


@functools.cache
def _last_buckets(bounds: tuple[float, ...]) -> NarrowArray:
    """Return the log bucket that each bound lies in."""
    return np.asarray([int(LogHistogram.of([bound]).buckets[0]) for bound in bounds], np.int32)
