"""Grids of cells for tests: one text per batch size, one `goodput/share` for each load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from servetop.analysis.sweep.batch_rows import RowKey, RowLimit
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict, sweep_verdict

RATES = (8.0, 16.0, 24.0)
TTFT = {"ttft": 0.5}


def cell(
    batch: int | None, load: float, figures: str, *, closed: bool = False, stage: int = 0, repeats: int = 1,
    steady: bool = True, failed: int = 0,
) -> SweepCell:  # fmt: skip
    """One cell: `11.2/99` is a goodput of 11.2 requests/s and 99 % within the objectives, `11.2` has no objectives."""
    rate, _, percent = figures.partition("/")
    share = float(percent) / 100 if percent else None
    done = float(rate) / share if share else float(rate)
    return SweepCell(
        max_num_seqs=batch, request_rate=math.inf if closed else load, max_concurrency=int(load) if closed else None,
        stages=tuple(range(stage, stage + repeats)), start=10.0 * stage, request_throughput=done,
        output_throughput=100 * done, request_goodput=None if share is None else float(rate), share_within=share,
        kept=None if share is None else share >= 0.95, steady=steady, failed=failed, preemptions=0.0, p99_ttft_ms=40.0,
        p99_itl_ms=20.0, p99_tpot_ms=20.0, p99_e2el_ms=900.0,
    )  # fmt: skip


def grid(rows: Mapping[Any, str], *, closed: bool = False, steady: bool = True) -> list[SweepCell]:
    """The cells of a grid over RATES, or over as many concurrencies."""
    cells: list[SweepCell] = []
    for batch, row in rows.items():
        for load, figures in zip(RATES, row.split(), strict=False):
            if figures != "-":
                cells.append(cell(batch, load, figures, closed=closed, stage=len(cells), steady=steady))
    return cells


def judged(
    cells: list[SweepCell], *, objectives: Mapping[str, float] = TTFT, limits: Mapping[RowKey, RowLimit] | None = None,
    overloaded: frozenset[int] = frozenset(),
) -> SweepVerdict:  # fmt: skip
    """The verdict of some cells."""
    return sweep_verdict(cells, objectives=objectives, limits=limits or {}, overloaded=overloaded)
