"""The share of requests that a server fails, by its own counters, as far as it exports such."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.analysis.exported.failure_counters import FAILURE_COUNTERS
from servetop.analysis.exported.metric_values import Periods
from servetop.analysis.exported.scrape_history import SeriesName
from servetop.core.arrays import FloatArray


def failed_share(periods: Periods) -> FloatArray:
    """Return failed requests / all that ended in each period, 0-1; NaN without a request, and without such counters."""
    unknown = np.full(periods.seconds.size, np.nan)
    for counter in FAILURE_COUNTERS:
        own, beside = _columns(periods.columns, counter.names), _columns(periods.columns, counter.names_beside)
        if not own and not beside:
            continue
        failed = [place for place in own if counter.is_failure(periods.columns[place].label(counter.label) or "")]
        total = _grown(periods, [*own, *beside])
        return np.asarray(np.divide(_grown(periods, failed), total, out=unknown, where=total > 0))
    return unknown


def _columns(columns: Sequence[SeriesName], names: Sequence[str]) -> list[int]:
    return [place for place, column in enumerate(columns) if column.name in names]


def _grown(periods: Periods, places: Sequence[int]) -> FloatArray:
    """Return what some counters grew by in each period; those that are not known then count as 0."""
    return np.asarray(np.nan_to_num(periods.increases[:, places]).sum(axis=1))
