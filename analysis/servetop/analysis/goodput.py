"""Goodput (SLO attainment) from histograms: requests within each objective, and bounds for all objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.histogram import LogHistogram, bucket_value


def meets_objectives(record: RequestRecord, limits: Mapping[str, float], *, from_due: bool = False) -> bool:
    """Return whether a request succeeded within all limits (seconds by metric), as `request_goodput` counts.

    A request without later tokens meets a limit of TPOT; one that reasoned and gave no answer misses one of TTFOT.
    With `from_due`, TTFT, TTFOT and E2EL include the time from due to sent.
    """
    if record.status is not RequestStatus.OK:
        return False
    waited = record.sent - record.due if from_due and record.sent is not None else 0.0
    return all(_is_within(record, metric, limit, waited) for metric, limit in limits.items())


def _is_within(record: RequestRecord, metric: str, limit: float, waited: float) -> bool:
    value = getattr(record, metric, None)
    if value is None:
        return metric != "ttfot" or record.ttft is None
    return bool(value + (0.0 if metric == "tpot" else waited) <= limit)


def share_within(histogram: LogHistogram, limit: float) -> float:
    """Return the fraction of values at or below `limit` seconds, 0..1; NaN for an empty histogram.

    A bucket is counted if its middle is within the limit, so values less than 1 % from the limit may be misjudged.
    """
    if not histogram.buckets.size:
        return math.nan
    middles = np.array([bucket_value(int(bucket)) for bucket in histogram.buckets])
    return float(histogram.counts[middles <= limit].sum() / histogram.count)


def histogram_for(histograms: Mapping[str, LogHistogram], metric: str) -> LogHistogram:
    """Return the histogram of an objective's metric; without reasoning, TTFOT is TTFT."""
    found = histograms[metric]
    return histograms["ttft"] if metric == "ttfot" and not found.buckets.size and "ttft" in histograms else found


def goodput_bounds(histograms: Mapping[str, LogHistogram], limits: Mapping[str, float]) -> tuple[float, float]:
    """Return the minimum and maximum fraction of requests within all limits (seconds by metric).

    These are Fréchet's bounds from the fractions within each limit, because histograms do not show whether the same
    requests exceed several limits (the summary counts from raw rows). NaN without limits or measurements; equal for
    one limit.
    """
    shares = [
        share_within(histogram_for(histograms, metric), limit)
        for metric, limit in limits.items()
        if metric in histograms
    ]
    if not shares or any(math.isnan(share) for share in shares):
        return math.nan, math.nan
    return max(0.0, 1 - sum(1 - share for share in shares)), min(shares)
