"""The requests of a page: latencies for limits that a reader moves, as rows, or as bins in a large run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.summary.request_metrics import latencies_by_request
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.events import RequestStatus
from servetop.reports.page.packed_columns import PackedColumn, packed, rounded_beside

MOST_ROWS = 100_000
"""Requests that a page has one by one; more are counted in bins."""
LIMITED = ("ttft", "tpot", "e2el")
"""Latencies with a slider, whatever the objectives."""
_BIN_SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Relative widths of bins, of which the first that leaves few enough is used."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestRows:
    """The latencies of the requests that ended, except cancelled ones: each row counts `count` of them."""

    columns: Mapping[str, PackedColumn]
    """Seconds by metric. NaN meets any limit, infinity none."""
    served: PackedColumn
    """1 for a successful request, 0 for a failed one."""
    stages: PackedColumn
    counts: PackedColumn | None
    """Requests of each row; None for one."""
    rows: int
    ended: int
    """All requests counted."""
    bin_share: float | None
    """Width of the bins as a fraction of the latency; None for exact rows."""

    def as_data(self) -> dict[str, object]:
        """Return it for the page's script."""
        return {
            "columns": self.columns, "served": self.served, "stages": self.stages, "counts": self.counts,
            "rows": self.rows, "ended": self.ended, "binShare": self.bin_share,
        }  # fmt: skip


def request_rows(requests: RequestColumns, *, objectives: Mapping[str, float], most: int = MOST_ROWS) -> RequestRows:
    """Return the rows of requests loaded with their `stage`; `objectives` are limits in seconds by metric.

    A count of the requests within the objectives is that of `request_summary`, also from bins: an edge of a bin is at
    each objective.
    """
    ended = ~requests.with_status(RequestStatus.CANCELLED)
    served = requests.with_status(RequestStatus.OK)[ended]
    stages = np.nan_to_num(requests.others["stage"][ended]).astype(np.int64)
    metrics = [*LIMITED, *(each for each in objectives if each not in LIMITED)]
    columns = {metric: values[ended] for metric, values in _judged(requests, metrics).items()}
    if served.size <= most:
        return _packed_rows(columns, served, stages, objectives=objectives)
    for share in _BIN_SHARES:
        binned = (_upper_edges(each, objectives.get(metric), share) for metric, each in columns.items())
        first, counts = _distinct(itertools.chain((served, stages), binned), rows=served.size)
        if first.size <= most or share == _BIN_SHARES[-1]:
            break
    chosen = {metric: _upper_edges(each[first], objectives.get(metric), share) for metric, each in columns.items()}
    return _packed_rows(chosen, served[first], stages[first], objectives=objectives, counts=counts, bin_share=share)


def _judged(requests: RequestColumns, metrics: Sequence[str]) -> dict[str, FloatArray]:
    """Return latencies as objectives judge them: NaN for a request that meets any limit, infinity for none."""
    latencies = latencies_by_request(requests, only=metrics)
    if "ttfot" in latencies:
        late = np.isnan(latencies["ttfot"]) & ~np.isnan(latencies["ttft"])
        latencies["ttfot"] = np.where(late, np.inf, latencies["ttfot"])
    return {metric: latencies[metric] for metric in metrics if metric in latencies}


def _upper_edges(values: FloatArray, limit: float | None, share: float) -> FloatArray:
    """Return the upper edge of each value's bin; the edges are powers of `1 + share` times the limit, or a second."""
    base = 1.0 if limit is None else limit
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.ceil(np.log(values / base) / np.log1p(share) - 1e-9)
    edges = base * np.exp(steps * np.log1p(share))
    edges = np.where(np.isinf(values) | np.isnan(values), values, edges)
    if limit is None:
        return edges
    within = values <= limit
    return np.where(within, np.minimum(edges, limit), np.maximum(edges, np.nextafter(limit, np.inf)))


def _distinct(columns: Iterable[npt.NDArray[Any]], *, rows: int) -> tuple[IntArray, IntArray]:
    """Return the positions of the first of each group of equal rows, and the number of rows in each group."""
    keys = np.zeros(rows, dtype=np.int64)
    for each in columns:
        values, codes = np.unique(each, return_inverse=True)
        keys = np.unique(keys * (values.size + 1) + codes, return_inverse=True)[1]
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return first, counts


def _packed_rows(
    columns: Mapping[str, FloatArray],
    served: BoolArray,
    stages: IntArray,
    *,
    objectives: Mapping[str, float],
    counts: npt.NDArray[np.int64] | None = None,
    bin_share: float | None = None,
) -> RequestRows:
    return RequestRows(
        columns={name: packed(rounded_beside(each, objectives.get(name))) for name, each in columns.items()},
        served=packed(served, "u1"),
        stages=packed(stages, "u2"),
        counts=None if counts is None else packed(counts, "u4"),
        rows=served.size,
        ended=served.size if counts is None else int(counts.sum()),
        bin_share=bin_share,
    )
