"""Rates of a watched server's counters in the bins of a chart: what they grew by is spread from page to page.

A page has how far a counter has come, and not when. With a source that has one every minute, such as a Prometheus
server, all of a minute would otherwise be in the bin in which the page arrived, and 0 in the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from servetop.analysis.series.page_rates import Pages
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray

_LEAST_COVERED = 1e-3
"""Seconds of a bin that lie between two pages, at least, for a rate."""


def spread_rates(
    history: TickHistory, columns: Iterable[str], *, at: FloatArray, seconds: float
) -> Mapping[str, FloatArray]:
    """Return the rate per second of counters' columns in bins of `seconds` around the times `at`; shape of `at`.

    NaN before the first page, after the last one, while the server is not read, and for what it does not export.
    """
    pages = Pages.of(history, start=0, stop=len(history))
    low, high = at - seconds / 2, at + seconds / 2
    current = np.concatenate([[0], np.cumsum(pages.current)])
    first, last = (np.searchsorted(pages.at, edge, side="right") for edge in (low, high))
    read = current[last] > current[first]
    return {
        name: np.where(read, _between_pages(history.column(name), pages, low=low, high=high), np.nan)
        for name in columns
    }


def _between_pages(counts: FloatArray, pages: Pages, *, low: FloatArray, high: FloatArray) -> FloatArray:
    places = pages.places[~np.isnan(counts[pages.places])]
    if places.size < 2:
        return np.full(low.shape, np.nan)
    written = np.maximum.accumulate(pages.ends[places])
    totals = np.cumsum(np.nan_to_num(counts))[places]
    covered = np.minimum(high, written[-1]) - np.maximum(low, written[0])
    grown = np.interp(high, written, totals) - np.interp(low, written, totals)
    rates = np.full(low.shape, np.nan)
    np.divide(grown, covered, out=rates, where=covered >= _LEAST_COVERED)
    return rates
