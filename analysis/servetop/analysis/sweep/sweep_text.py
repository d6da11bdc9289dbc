"""The verdict of a sweep in words: its headline, and the lines of its story."""

from __future__ import annotations

import math
from collections.abc import Iterable

from servetop.analysis.diagnosis import wording
from servetop.analysis.diagnosis.story_line import LineKind, StoryLine
from servetop.analysis.sweep.batch_rows import BatchRow
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.analysis.sweep.sweep_verdict import Objective, SweepVerdict
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.core.units import MS_PER_S

_MOST_ROWS = 4
"""Batch sizes that have a line each."""


def sweep_headline(sweep: SweepVerdict) -> str:
    """Return how many cells keep their thresholds, the best cell, and what each batch size sustains."""
    kept = "" if sweep.checks is None else sweep.checks.headline
    return "; ".join(part for part in (kept, _best_text(sweep), _sustainable_text(sweep)) if part)


def sweep_lines(sweep: SweepVerdict) -> Iterable[StoryLine]:
    """Yield a line for each batch size, for the best cell and for failed requests, and last what to try."""
    if sweep.best is not None:
        yield StoryLine(at=sweep.best.start, text=_details(sweep, sweep.best), kind=LineKind.CAUSE)
    elif sweep.closest is not None:
        yield StoryLine(at=sweep.closest.start, text=_details(sweep, sweep.closest), kind=LineKind.CAUSE)
    if len(sweep.rows) <= _MOST_ROWS:
        yield from (StoryLine(at=row.start, text=_row_text(sweep, row)) for row in sweep.rows if row.sustainable)
    else:
        yield StoryLine(at=None, text=_sustainable_text(sweep))
    failing = [cell for cell in sweep.cells if cell.failed]
    if failing:
        worst = max(failing, key=lambda cell: cell.failed)
        elsewhere = f", and in {counted(len(failing) - 1, 'other cell')}" if failing[1:] else ""
        yield StoryLine(at=worst.start, text=f"{counted(worst.failed, 'request')} failed in {worst.name}{elsewhere}")
    yield StoryLine(at=None, text=_advice(sweep), kind=LineKind.ADVICE)


def objectives_text(objectives: Iterable[Objective]) -> str:
    """Return all objectives, such as `TTFT ≤ 500 ms, TPOT ≤ 50 ms`."""
    return wording.objectives_text({each.metric: each.limit_ms / MS_PER_S for each in objectives})


def _best_text(sweep: SweepVerdict) -> str:
    best, closest, limits = sweep.best, sweep.closest, objectives_text(sweep.objectives)
    if best is not None and best.share_within is not None:
        named = "the objective" if len(sweep.objectives) == 1 else "the objectives"
        kept = formats.percent(best.share_within, zeros="never")
        done = f"{_rate(best.request_throughput)} done, {kept} within {named}"
        return f"best within {limits}: {best.name} ({done})"
    if best is not None:
        done = f"{best.output_throughput or 0.0:,.0f} tok/s, {_rate(best.request_throughput)} done"
        return f"highest throughput: {best.name} ({done})"
    if not sweep.objectives:
        return "no cell served a request"
    near = ""
    if closest is not None:
        kept = formats.percent(closest.share_within or 0.0, zeros="never")
        near = f"; closest: {closest.name} ({kept} of its requests)"
    share = formats.percent(sweep.kept_share, zeros="never")
    return f"no cell keeps {limits} for {share} of its requests{near}"


def _sustainable_text(sweep: SweepVerdict) -> str:
    rows = [row for row in sweep.rows if row.sustainable]
    if not rows:
        return ""
    listed = ", ".join(f"{row.name} {row.sustainable}".strip() for row in rows)
    return f"sustainable{': ' if len(rows) > 1 else ' '}{listed} {_unit(rows[0])}"


def _row_text(sweep: SweepVerdict, row: BatchRow) -> str:
    name = f"{row.name}: " if row.name else ""
    kept = f" with {objectives_text(sweep.objectives)}" if sweep.objectives else ""
    limit = f"; above that {row.limit}" if row.limit and row.missed is not None else ""
    briefly = f"; {row.kept:g} kept, without a steady state" if row.kept_briefly else ""
    return f"{name}sustainable {row.sustained_load} {_unit(row)}{kept}{row.doubt}{limit}{briefly}"


def _details(sweep: SweepVerdict, cell: SweepCell) -> str:
    figures = [
        f"{cell.output_throughput or 0.0:,.0f}{_interval(cell)} tok/s",
        f"{_rate(cell.request_goodput)} within {objectives_text(sweep.objectives)}" if sweep.objectives else "",
        "" if cell.p99_ttft_ms is None else f"TTFT p99 {formats.seconds(cell.p99_ttft_ms / MS_PER_S, prose=True)}",
        f"mean {cell.mean_of}" if cell.mean_of else "",
    ]
    return f"{cell.name}: {', '.join(each for each in figures if each)}"


def _interval(cell: SweepCell) -> str:
    """Return the 95 % interval of the output throughput over starts; empty without one."""
    ends = None if cell.intervals is None else cell.intervals.output_throughput
    return "" if ends is None else f" [{ends[0]:,.0f}, {ends[1]:,.0f}]"


def _advice(sweep: SweepVerdict) -> str:
    """Return what to measure next; never a batch size or a load that the sweep shows to be too small or too large."""
    best, row = sweep.best, sweep.best_row
    if best is None or row is None:
        lowest = min((cell.load for cell in sweep.cells), default=math.inf)
        least = f"a load below {lowest:g} {_unit(sweep.rows[0])}" if math.isfinite(lowest) else "a lower load"
        return f"try {least}, or an objective that an idle engine keeps"
    at = f" {'with' if row.settings else 'at'} {row.name}" if row.name else ""
    if row.kept is None:
        return f"try a load below {row.missed:g} {_unit(row)}{at}" if row.missed is not None else "try longer cells"
    if row.missed is None:
        return f"try a load above {row.kept:g} {_unit(row)}{at}"
    if row.kept_briefly:
        return f"try longer cells from {row.estimate:.3g} {_unit(row)} on{at}"
    larger = "" if sweep.advised_batch is None else f", or max_num_seqs {sweep.advised_batch}"
    return f"try loads between {row.kept:g} and {row.missed:g} {_unit(row)}{at}{larger}"


def _unit(row: BatchRow) -> str:
    return "in flight" if row.closed else "req/s"


def _rate(value: float | None) -> str:
    return f"{formats.rate_number(value or 0.0)} req/s"
