"""Steady state in the tables of a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group

from servetop.cli.report.energy_table import millijoules_per_token
from servetop.cli.tables import light_table, titled
from servetop.tui.drawing import formats

Summary = Mapping[str, Any]

UNSTEADY = "~"
"""Behind a figure whose stage had no steady state."""
_RATES = (
    ("request_throughput", "Request throughput, req/s"),
    ("output_throughput", "Output throughput, tok/s"),
    ("total_token_throughput", "Total token throughput, tok/s"),
    ("request_goodput", "Goodput, req/s"),
    ("p50_ttft_ms", "TTFT p50, ms"),
    ("p99_ttft_ms", "TTFT p99, ms"),
    ("p50_tpot_ms", "TPOT p50, ms"),
    ("p99_itl_ms", "ITL p99, ms"),
    ("p99_e2el_ms", "E2EL p99, ms"),
)


def steady_table(summary: Summary) -> Group | None:
    """The figures that matter, of the whole run and of its steady window; None without one."""
    steady = summary["steady"]
    if steady["start"] is None:
        return None
    table = light_table("", "whole", "steady")
    for key, name in _RATES:
        if summary[key] is not None or steady[key] is not None:
            table.add_row(name, formats.number(summary[key]), formats.number(steady[key]))
    energy = [millijoules_per_token(each) for each in (summary, steady)]
    if energy[1] is not None:
        table.add_row("Energy, mJ/token", *map(formats.number, energy))
    return titled(f"Steady state, {steady['start']:.1f} s to {steady['end']:.1f} s of the run", table)


def steady_seconds(stage: Summary) -> str:
    """How long a stage was steady."""
    seconds = stage["steady"]["seconds"]
    return formats.UNKNOWN if seconds is None else formats.number(seconds)


def steady_mark(stages: Sequence[Summary]) -> str:
    """A mark when one of the repetitions of a cell was not steady."""
    return f" {UNSTEADY}" if any(stage["steady"]["start"] is None for stage in stages) else ""


def steady_lines(stages: Sequence[Summary]) -> list[str]:
    """Why stages had no steady state, one line for each reason."""
    labels: dict[str, list[str]] = {}
    for stage in stages:
        if stage["steady"]["start"] is None:
            labels.setdefault(str(stage["steady"]["reason"]), []).append(str(stage["label"]))
    several = len(stages) > 1
    return [f"steady     none{f' in {_named(names)}' if several else ''}: {reason}" for reason, names in labels.items()]


def _named(labels: Sequence[str]) -> str:
    return ", ".join(labels[:2]) if len(labels) <= 2 else f"{labels[0]} and {len(labels) - 1} more"
