"""The shapes of latencies on a page: cumulative distributions, and heat maps over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.statistics.percentiles import Distribution
from servetop.analysis.summary.request_metrics import latencies_by_request
from servetop.core.arrays import FloatArray
from servetop.core.events import RequestStatus
from servetop.reports.page.packed_columns import packed

_OF_REQUESTS = ("ttft", "tpot", "e2el")
LABELS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL", "ttfot": "TTFOT"}
SHARES = np.unique(np.concatenate((np.linspace(0, 100, 201), np.linspace(95, 99.9, 50), [99.95, 99.99])))
"""The percentiles of a distribution's curve, closer together in its tail."""
_TIMES, _ROWS = 120, 36
"""The most columns and the rows of a heat map."""


def distribution_curves(requests: RequestColumns) -> dict[str, object]:
    """Return the curves of the successful requests: seconds at each percentile of `shares`, by metric."""
    ok = requests.with_status(RequestStatus.OK)
    latencies = latencies_by_request(requests, only=_OF_REQUESTS)
    pools = {name: Distribution.of(each[ok]) for name, each in latencies.items()}
    pools["itl"] = requests.itl
    curves = {
        name: packed(pool.percentiles(SHARES))
        for name in ("ttft", "tpot", "itl", "e2el")
        if (pool := pools[name]).values.size
    }
    return {"shares": packed(SHARES), "curves": curves}


def heat_maps(requests: RequestColumns) -> dict[str, object]:
    """Return by metric how many successful requests, by the time they were sent, had a latency of each height.

    `times` and `heights` are edges in seconds; `counts` is row by row, the lowest latency first.
    """
    ok, latencies = requests.with_status(RequestStatus.OK), latencies_by_request(requests, only=_OF_REQUESTS)
    sent = requests.sent[ok]
    maps: Mapping[str, object] = {
        name: found for name in _OF_REQUESTS if (found := _heat_map(sent, latencies[name][ok])) is not None
    }
    return dict(maps)


def _heat_map(sent: FloatArray, values: FloatArray) -> dict[str, object] | None:
    known = np.isfinite(sent) & np.isfinite(values) & (values > 0)
    if known.sum() < 2:
        return None
    sent, values = sent[known], values[known]
    width = max(1.0, np.ceil((sent.max() - sent.min()) / _TIMES))
    first = np.floor(sent.min())
    times = first + width * np.arange(np.ceil((sent.max() - first) / width) + 1)
    times = times if times.size > 1 and times[-1] > sent.max() else np.append(times, times[-1] + width)
    low, high = np.log(values.min()), np.log(max(values.max(), values.min() * 1.01))
    heights = np.linspace(low, high, _ROWS + 1)
    counts, _, _ = np.histogram2d(np.log(values), sent, bins=(heights, times))
    kind = "u2" if counts.max() < 1 << 16 else "u4"
    return {"times": packed(times), "heights": packed(np.exp(heights)), "counts": packed(counts.ravel(), kind)}
