"""The mean of a histogram of tokens, which is exact where quantiles are only known to be in a bucket."""

from __future__ import annotations

import numpy as np

from servetop.analysis.exported.metric_spec import BOUND, MetricKind, MetricSpec
from servetop.analysis.exported.metric_values import Periods

_INFINITE = ("+Inf", "Inf", "inf")


def histogram_mean(spec: MetricSpec, periods: Periods) -> float | None:
    """Return the mean of a histogram's observations in the first period, from its sum and its last bucket.

    None if it is another metric, if nothing was observed, or if its sum is not recorded: only those of PER_TOKEN are.
    """
    if spec.kind is not MetricKind.QUANTILES:
        return None
    for name in spec.sums:
        total = _increase(periods, name)
        count = _increase(periods, name.removesuffix("_sum") + "_bucket", bounds=_INFINITE)
        if total is not None and count:
            return total / count
    return None


def _increase(periods: Periods, name: str, *, bounds: tuple[str, ...] = ()) -> float | None:
    """Return what the series of a name, and with one of the `bounds`, grew by in all; None if that is not known."""
    own = [
        at
        for at, column in enumerate(periods.columns)
        if column.name == name and (not bounds or column.label(BOUND) in bounds)
    ]
    grown = periods.increases[0, own]
    return None if np.isnan(grown).all() else float(np.nansum(grown))
