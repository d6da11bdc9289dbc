"""Throughput and latency over the load: the curve of the run on the screen, and that of its baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.tui.state.sweep_cells import Cell, Load, StagedRun, measured

PERCENTILE = 99
"""Of latencies."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadCurve:
    """The finished cells of one batch size by load; all arrays have shape (cells,), loads ascend."""

    batch: int | None = None
    loads: FloatArray
    """Requests/s, or the concurrency in closed loops."""
    output_rates: FloatArray
    latencies: FloatArray
    """Seconds, at `PERCENTILE`."""


def load_curves(run: StagedRun, baseline: StagedRun | None, *, metric: str) -> tuple[LoadCurve, LoadCurve]:
    """The curve of a run and that of its baseline: of the batch size with the most loads, if possible a common one.

    Both have rates, unless the run has closed loops only.
    """
    own, before = ({} if each is None else _finished(each) for each in (run, baseline))
    closed = bool(own) and all(math.isinf(load.rate) for _, load in own)
    own, before = (
        {key: cell for key, cell in cells.items() if math.isinf(key[1].rate) == closed} for cells in (own, before)
    )
    common = own.keys() & before.keys()
    batches = [_most_loads(common or own), _most_loads(common or before)]
    first, second = (
        _curve({load: cell for (size, load), cell in cells.items() if size == batch}, batch, metric)
        for cells, batch in zip((own, before), batches, strict=True)
    )
    return first, second


def _finished(run: StagedRun) -> dict[tuple[int | None, Load], Cell]:
    return {key: cell for key, cell in measured(run).items() if not cell.running_now and cell.output_rate > 0}


def _most_loads(keys: Mapping[tuple[int | None, Load], Cell] | set[tuple[int | None, Load]]) -> int | None:
    """Return the batch size with the most cells; None without any."""
    return max(Counter(batch for batch, _ in keys).items(), key=lambda item: item[1], default=(None, 0))[0]


def _curve(cells: Mapping[Load, Cell], batch: int | None, metric: str) -> LoadCurve:
    loads = sorted(cells)
    return LoadCurve(
        batch=batch,
        loads=np.array([load.concurrency if math.isinf(load.rate) else load.rate for load in loads]),
        output_rates=np.array([cells[load].output_rate for load in loads]),
        latencies=np.array([cells[load].p99(metric) for load in loads]),
    )
