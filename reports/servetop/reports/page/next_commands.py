"""The commands that go on from a run, a sweep or a search, the most useful one first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from servetop.analysis.sweep.batch_rows import BatchRow, row_key
from servetop.analysis.sweep.sweep_cell import SweepCell
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.reports.page.report_page import ReportPage

Command = tuple[str, Sequence[str]]
"""The purpose of a command, and its arguments."""
_LONGER, _EACH = "3m", "1m"
"""How long one load is measured again, and each of several."""
_ABOVE = (1.25, 1.5)
"""Loads above the highest that was kept, as multiples of it."""
_BETWEEN = (0.25, 0.5, 0.75)
"""Loads between two, as parts of their distance."""


def next_commands(page: ReportPage) -> Iterator[Command]:
    """Yield them; of a search only how to continue it, as its loads cannot be run again, and none of an imported run.

    A sweep whose cells set more than load and batch size cannot be run again in part.
    """
    if page.search is not None:
        if page.texts.unfinished:
            yield "Continue the search:", ("servetop", "search", "--resume", page.name)
    elif page.summary.sweep is not None:
        yield from _of_sweep(page, page.summary.sweep)
    elif page.summary.imported is None:
        yield from _of_run(page)


def _of_run(page: ReportPage) -> Iterator[Command]:
    story = page.summary.story
    if story is None:
        return
    if story.advised_max_num_seqs is not None:
        batch = ("--max-num-seqs", str(story.advised_max_num_seqs))
        yield "The same load with the advised batch size:", ("servetop", "rerun", page.name, *batch)
    if story.sustainable_rate is not None and not story.sustainable_is_lower_bound:
        load = ("--request-rate", _number(story.sustainable_rate), "--duration", _LONGER)
        yield "Confirm the sustainable rate:", ("servetop", "rerun", page.name, *load)


def _of_sweep(page: ReportPage, sweep: SweepVerdict) -> Iterator[Command]:
    row, best = sweep.best_row, sweep.best
    if any(cell.settings for cell in sweep.cells):
        return
    sets_batch = any(each.max_num_seqs is not None for each in page.record.header.config.stages)

    def rerun(cell: SweepCell, loads: Sequence[float], each: str = _EACH, *, batch: int | None = None) -> Sequence[str]:
        size = (batch or cell.max_num_seqs) if sets_batch else batch
        given = () if size is None else ("--max-num-seqs", str(size))
        return ("servetop", "rerun", page.name, *given, *_load(cell, loads, each))

    if best is None or row is None:
        lowest = min(sweep.cells, key=lambda cell: cell.load, default=None)
        if lowest is not None and math.isfinite(lowest.load):
            yield "A lower load than any of the sweep:", rerun(lowest, (lowest.load / 2,), _LONGER)
        return
    purpose, loads, each = _next_loads(row)
    if loads:
        yield purpose, rerun(best, loads, each)
    if sweep.advised_batch is not None and sets_batch:
        ends = [load for load in (row.kept, row.missed) if load is not None]
        yield "The same loads with the advised batch size:", rerun(best, ends, batch=sweep.advised_batch)
    if math.isfinite(best.load) and row_key(best) == row.key:
        yield "The best cell for longer:", rerun(best, (best.load,), _LONGER)


def _next_loads(row: BatchRow) -> tuple[str, Sequence[float], str]:
    """Return the purpose, the loads and the time of each that narrow down what the best row sustains."""
    if row.kept is None:
        return (
            "A load below the lowest that missed the objectives:",
            () if row.missed is None else (row.missed / 2,),
            _LONGER,
        )
    if row.missed is None:
        return "Loads above the highest one that was kept:", [row.kept * each for each in _ABOVE], _EACH
    if row.kept_briefly and row.estimate is not None:
        return "The estimated load for longer:", (row.estimate,), _LONGER
    span = row.missed - row.kept
    return (
        "Loads between the last one that was kept and the next:",
        [row.kept + each * span for each in _BETWEEN],
        _EACH,
    )


def _load(cell: SweepCell, loads: Sequence[float], each: str) -> Sequence[str]:
    """Return the options of these loads; of closed loops only the middle one, as each is a run of its own."""
    if cell.closed:
        clients = max(1, round(loads[len(loads) // 2]))
        return ("--request-rate", "inf", "--max-concurrency", str(clients), "--duration", each)
    limit = () if cell.max_concurrency is None else ("--max-concurrency", str(cell.max_concurrency))
    if len(loads) == 1:
        return ("--request-rate", _number(loads[0]), "--duration", each, *limit)
    return ("--ramp", ",".join(f"{_number(load)}:{each}" for load in loads), *limit)


def _number(load: float) -> str:
    return f"{load:.3g}" if load < 1000 else f"{load:.0f}"
