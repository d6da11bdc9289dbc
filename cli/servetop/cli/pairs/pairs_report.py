"""Prints the answer of a series of pairs: a table for each load, or JSON, and what it would take to know more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.comparison.difference_texts import (
    difference_text,
    duration_text,
    interval_text,
    margin_text,
)
from servetop.analysis.comparison.paired_runs import PairedMetric, paired_difference
from servetop.analysis.comparison.verdicts import ERROR_RATE, MOST_SECONDS
from servetop.analysis.summary.summary_json import plain_object
from servetop.cli.pairs.arm_texts import arm_texts
from servetop.cli.tables import out_tables
from servetop.core.errors import ExitCode
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.reports.comparison.preconditions import MIN_REQUESTS
from servetop.reports.tables import cell, light_table, titled
from servetop.run import console
from servetop.run.pairs.pair_series import SeriesEnd, SeriesPlan, SeriesResult


def print_series(result: SeriesResult, plan: SeriesPlan, *, folder: Path, as_json: bool) -> None:
    """Print the tables or JSON on stdout, and the reason of an exit code other than 0 on stderr."""
    reason = end_reason(result, plan, folder=folder)
    if as_json:
        console.out_json(series_json(result, plan, folder=folder, reason=reason))
    else:
        by_load: dict[StageLoad, list[PairedMetric]] = {}
        for each in result.state.metrics:
            by_load.setdefault(each.load, []).append(each)
        console.out(*(f"{letter}  {text}" for letter, text in zip("AB", arm_texts(plan.configs), strict=True)))
        if by_load:
            out_tables(*(titled(load.label, _table(metrics)) for load, metrics in by_load.items()))
        state = result.state
        if missing := _not_measured(result, plan):
            console.out("", f"not measured: {', '.join(missing)}")
        spent, budget = duration_text(state.seconds), duration_text(plan.budget)
        pairs = counted(state.pairs, "pair")
        console.out("", f"{pairs} in {spent} of {budget} · recordings in {folder}")
    if result.exit_code is not ExitCode.OK:
        console.message(reason)


def _table(metrics: Sequence[PairedMetric]) -> Table:
    table = light_table("", "A", "B", "difference", "interval", "margin", "verdict")
    for found in map(paired_difference, metrics):
        table.add_row(
            cell(f"{found.title}, {found.unit}"),
            formats.in_full(found.a),
            formats.in_full(found.b),
            difference_text(found),
            interval_text(found),
            margin_text(found),
            str(found.verdict),
        )
    return table


def end_reason(result: SeriesResult, plan: SeriesPlan, *, folder: Path) -> str:
    """Return why the series ended without an answer, and what to do; empty if it has one."""
    state = result.state
    match result.end:
        case SeriesEnd.ANSWERED:
            return ""
        case SeriesEnd.NOT_MEASURED:
            return (
                "cannot tell: none of the metrics was measured in both configurations: send more requests (a stage "
                f"needs {MIN_REQUESTS} or more), or choose others with --metric"
            )
        case SeriesEnd.INTERRUPTED:
            return f"{result.reason}: to continue after pair {state.pairs}, add --into {folder} --resume"
        case SeriesEnd.FAILED:
            return result.reason
    limit = f"{plan.pairs} pairs" if result.end is SeriesEnd.PAIRS else f"the budget of {duration_text(plan.budget)}"
    titles = list(dict.fromkeys(each.metric.title for each in state.open_metrics))
    return f"cannot tell {', '.join(titles)} within {limit}{_cost(result)}"


def _cost(result: SeriesResult) -> str:
    """Return how many more pairs would tell, as the end of a sentence."""
    state = result.state
    needed = [each.needed for each in state.open_metrics]
    known = [each for each in needed if each is not None]
    if len(known) < len(needed):
        return ": the pairs differ too much to say how many would tell"
    more = max(known) - state.pairs
    limit = "more --pairs" if result.end is SeriesEnd.PAIRS else "a larger --budget"
    seconds = more * state.pair_seconds
    time = f"more than {MOST_SECONDS / 3600:g} h" if seconds > MOST_SECONDS else duration_text(seconds)
    return f": about {more} more pairs ({time}) would tell, with --resume and {limit}"


def series_json(result: SeriesResult, plan: SeriesPlan, *, folder: Path, reason: str) -> dict[str, Any]:
    """Return the result as plain data: shares as fractions, times in seconds."""
    state = result.state
    return {
        "end": str(result.end),
        "exit_code": int(result.exit_code),
        "error": reason or None,
        "pairs": state.pairs,
        "seconds": state.seconds,
        "seconds_per_pair": state.pair_seconds,
        "budget": plan.budget,
        "error_rate": ERROR_RATE,
        "configurations": dict(zip("ab", arm_texts(plan.configs), strict=True)),
        "engines_restarted": plan.configs.restarts,
        "recordings": str(folder),
        "metrics": [_metric_json(each) for each in state.metrics],
        "not_measured": _not_measured(result, plan),
    }


def _not_measured(result: SeriesResult, plan: SeriesPlan) -> list[str]:
    """Return the keys of metrics that have no value in A or B."""
    known = {each.metric.key for each in result.state.metrics}
    return [each.key for each in plan.options.metrics if each.key not in known] if result.state.pairs else []


def _metric_json(each: PairedMetric) -> dict[str, Any]:
    return {
        "load": each.load.label,
        "measured": plain_object(paired_difference(each)),
        "pairs_needed": each.needed,
        "differences": list(each.differences),
    }
