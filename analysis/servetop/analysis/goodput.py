"""Goodput (SLO attainment) from histograms: requests within each objective, and bounds for all objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from servetop.core.histogram import LogHistogram, bucket_value


def share_within(histogram: LogHistogram, limit: float) -> float:
    """Share of values at or below `limit` seconds, 0-1; NaN for an empty histogram.

    A bucket counts when its middle is within the limit: values less than 1 % from it may be on the wrong side.
    """
    if not histogram.buckets.size:
        return math.nan
    middles = np.array([bucket_value(int(bucket)) for bucket in histogram.buckets])
    return float(histogram.counts[middles <= limit].sum() / histogram.count)


def limited(histograms: Mapping[str, LogHistogram], metric: str) -> LogHistogram:
    """The histogram of an objective's metric; without reasoning, TTFOT is TTFT."""
    found = histograms[metric]
    return histograms["ttft"] if metric == "ttfot" and not found.buckets.size and "ttft" in histograms else found


def goodput_bounds(histograms: Mapping[str, LogHistogram], limits: Mapping[str, float]) -> tuple[float, float]:
    """Least and largest share of requests that can keep all limits (seconds by metric), given how many keep each.

    Fréchet's inequalities: histograms do not tell whether the same requests break several limits; raw rows do, and the
    summary's goodput is counted from them. NaN without limits or where nothing was measured; equal for one limit.
    """
    shares = [
        share_within(limited(histograms, metric), limit) for metric, limit in limits.items() if metric in histograms
    ]
    if not shares or any(math.isnan(share) for share in shares):
        return math.nan, math.nan
    return max(0.0, 1 - sum(1 - share for share in shares)), min(shares)
