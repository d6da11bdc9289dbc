"""The answer of a prediction in one sentence: the largest load that the engine sustains, and what limits it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.diagnosis.capacity import KEPT_SHARE
from servetop.analysis.sweep.batch_rows import BatchRow, batch_rows, grouped
from servetop.analysis.sweep.sweep_cell import SweepCell, best_cell
from servetop.analysis.sweep.sweep_text import objectives_text
from servetop.analysis.sweep.sweep_verdict import Objective
from servetop.core.config_values.cell_settings import settings_text
from servetop.core.text.formats import rate_number
from servetop.core.units import MS_PER_S
from servetop.simulator.predict.prediction import CellPrediction, CellResult, PredictedAnswer

_Load = tuple[int, float, int | None, str | None]
"""Batch size, requests/s, concurrency limit, settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One batch size of one variant."""

    label: str
    row: BatchRow
    cells: Sequence[SweepCell]
    limits: Mapping[SweepCell, str | None]
    low_misses: Sequence[float]
    """Loads below the one kept that did not keep the objectives."""


def predicted_answer(cells: Sequence[CellPrediction], *, objectives: Mapping[str, float]) -> PredictedAnswer | None:
    """Return the answer for the batch size that sustains most; None if no engine could start.

    `objectives` are limits in seconds by metric.
    """
    variants: dict[str, list[CellPrediction]] = {}
    for cell in cells:
        if cell.result is not None:
            variants.setdefault(cell.label or cell.engine, []).append(cell)
    rows = [row for label, own in variants.items() for row in _rows(label, own, objectives=bool(objectives))]
    if not rows:
        return None
    best = max(rows, key=lambda each: (each.row.kept or 0.0, _most_served(each.cells), -(each.row.max_num_seqs or 0)))
    limits = objectives_text(Objective(metric=name, limit_ms=each * MS_PER_S) for name, each in objectives.items())
    named = f"{best.label}: " if len(variants) > 1 else ""
    return PredictedAnswer(
        text=named + (_within(best, limits) if objectives else _saturation(best)),
        label=best.label if len(variants) > 1 else "",
        max_num_seqs=best.row.max_num_seqs or 0,
        kept=best.row.kept,
        missed=best.row.missed,
        limit=_limit(best),
    )


def _rows(label: str, cells: Sequence[CellPrediction], *, objectives: bool) -> Iterable[_Row]:
    groups: dict[_Load, list[CellResult]] = {}
    for each in cells:
        load = each.max_num_seqs, each.request_rate, each.max_concurrency, settings_text(each.settings)
        groups.setdefault(load, []).append(each.require_result())
    by_cell = {_cell(load, found): found for load, found in groups.items()}
    limits = {cell: next((each.limit for each in found if each.limit), None) for cell, found in by_cell.items()}

    def keeps(cell: SweepCell) -> bool | None:
        if objectives:
            return cell.kept
        return None if cell.closed else not any(each.saturated for each in by_cell[cell])

    for row in batch_rows(list(by_cell), keeps=keeps, limits={}):
        own = grouped(by_cell)[row.key]
        low = [cell.load for cell in own if cell.load < (row.kept or 0.0) and keeps(cell) is False]
        yield _Row(label=label, row=row, cells=own, limits=limits, low_misses=low)


def _cell(load: _Load, results: Sequence[CellResult]) -> SweepCell:
    """Return the mean of the repeats of a cell."""

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(results)

    shares = [each.share_within for each in results if each.share_within is not None]
    share = min(shares, default=None)
    served = mean(each.request_throughput for each in results)
    return SweepCell(
        max_num_seqs=load[0],
        request_rate=load[1],
        max_concurrency=load[2],
        settings=load[3],
        stages=(),
        start=0.0,
        request_throughput=served,
        output_throughput=mean(each.output_throughput for each in results),
        request_goodput=None if share is None else share * served,
        share_within=share,
        kept=None if share is None else share >= KEPT_SHARE,
        steady=True,
        failed=sum(each.refused for each in results),
        preemptions=mean(each.preemptions for each in results),
        p99_ttft_ms=mean(each.ttft_ms.p99 for each in results),
        p99_itl_ms=mean(each.itl_ms.p99 for each in results),
        p99_tpot_ms=None,
        p99_e2el_ms=mean(each.e2el_ms.p99 for each in results),
    )


def _most_served(cells: Sequence[SweepCell]) -> float:
    return max((cell.request_throughput or 0.0 for cell in cells), default=0.0)


def _limit(found: _Row) -> str | None:
    """What limits the lowest load that is too high; of loads without such a judgement, the highest throughput."""
    cell = next((cell for cell in found.cells if cell.load == found.row.missed), None)
    if cell is None and found.row.kept is None:
        cell = best_cell(found.cells, objectives=False)
    return None if cell is None else found.limits[cell]


def _within(found: _Row, limits: str) -> str:
    """Return the largest load within the objectives."""
    row, unit = found.row, "in flight" if found.row.closed else "req/s"
    why = f" ({_limit(found)})" if _limit(found) else ""
    if row.kept is None:
        closest = max(found.cells, key=lambda cell: cell.share_within or 0.0)
        share = f"{math.floor((closest.share_within or 0.0) * 100)} %"
        return f"no load keeps {limits} for {KEPT_SHARE:.0%} of its requests; closest: {closest.name} ({share}){why}"
    above = "no higher load was predicted" if row.missed is None else f"{row.missed:g} {unit} misses it{why}"
    low = f", but so does {found.low_misses[0]:g}: predict more requests" if found.low_misses else ""
    return f"largest load within {limits}: {row.kept:g} {unit} at {row.name}; {above}{low}"


def _saturation(found: _Row) -> str:
    """Return where the engine saturates, or what it serves at most where no load shows that."""
    row, why = found.row, f" ({_limit(found)})" if _limit(found) else ""
    best = best_cell(found.cells, objectives=False)
    served = "serves no request"
    if best is not None:
        served = f"serves up to {best.request_throughput:.3g} req/s, {best.output_throughput:,.0f} tok/s"
    if row.missed is None:
        if row.kept is None:
            return f"{row.name} {served}{why}"
        return f"{row.name} is not saturated up to {rate_number(row.kept)} req/s, the highest load"
    between = (
        f"below {rate_number(row.missed)}"
        if row.kept is None
        else f"between {rate_number(row.kept)} and {rate_number(row.missed)}"
    )
    return f"{row.name} saturates {between} req/s{why}; it {served}"
