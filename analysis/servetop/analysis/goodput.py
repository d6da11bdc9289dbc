"""Goodput (SLO attainment) from histograms: requests within each objective, and bounds for all objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.histogram import LogHistogram, bucket_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Attainment:
    """The share of requests that met all objectives, of those that ended (cancelled ones excluded); NaN if unknown.

    Latencies count from due, as the user felt them.
    """

    window: float = math.nan
    window_served: float = math.nan
    """The same as `window` with latencies from sent."""
    run: float = math.nan
    run_served: float = math.nan
    """The same as `run` with latencies from sent, which the summary's `request_goodput` counts."""

    @property
    def differs(self) -> bool:
        """Whether time in the client's queue made requests of this run miss an objective."""
        return self.run < self.run_served


def attainment(history: TickHistory, start: int, stop: int) -> Attainment:
    """Return the attainment over ticks `start` to `stop`, and over the run until then."""
    names = ("good", "good_due", "judged")
    window = {name: float(np.nansum(history.column(name, start=start, stop=stop))) for name in names}
    run = {name: history.total(name, stop=stop) for name in names}
    return Attainment(
        window=_share(window["good_due"], window["judged"]),
        window_served=_share(window["good"], window["judged"]),
        run=_share(run["good_due"], run["judged"]),
        run_served=_share(run["good"], run["judged"]),
    )


def _share(good: float, judged: float) -> float:
    return min(max(good / judged, 0.0), 1.0) if judged > 0 else math.nan


def share_within(histogram: LogHistogram, limit: float) -> float:
    """Return the fraction of values at or below `limit` seconds, 0..1; NaN for an empty histogram.

    A bucket is counted if its middle is within the limit, so values less than 1 % from the limit may be misjudged.
    """
    if not histogram.buckets.size:
        return math.nan
    middles = bucket_values(histogram.buckets)
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
