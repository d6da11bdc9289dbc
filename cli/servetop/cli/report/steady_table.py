"""Steady state in the tables of a summary."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from servetop.analysis.summary.summary_types import Measurements, RunSummary, StageSummary, SteadySummary
from servetop.core.text import formats
from servetop.reports.tables import light_table, titled

UNSTEADY = "~"
"""Marks a figure whose stage had no steady state."""


def steady_table(summary: RunSummary) -> Group | None:
    """The main figures of the whole run and of its steady window; None without one."""
    steady = summary.steady
    if steady.start is None or steady.end is None or steady.measured is None:
        return None
    table = light_table("", "whole", "steady")
    whole, within = _figures(summary.measured), _figures(steady.measured)
    for name, value in whole.items():
        if value is not None or within[name] is not None:
            table.add_row(name, formats.in_full(value), formats.in_full(within[name]))
    energies = [each.energy.millijoules_per_token for each in (summary.measured, steady.measured)]
    if energies[1] is not None:
        table.add_row("Energy, mJ/token", *map(formats.number, energies))
    costs = [each.cost for each in (summary.measured, steady.measured)]
    if costs[1] is not None and costs[1].per_million_tokens is not None:
        table.add_row(
            f"Cost per million tokens{f', {costs[1].currency}' if costs[1].currency else ''}",
            formats.money(costs[0].per_million_tokens if costs[0] is not None else None),
            formats.money_interval(costs[1].per_million_tokens, costs[1].per_million_tokens_interval),
        )
    return titled(f"Steady state, {steady.start:.1f} s to {steady.end:.1f} s of the run", table)


def _figures(measured: Measurements) -> dict[str, float | None]:
    requests = measured.requests
    return {
        "Request throughput, req/s": requests.request_throughput,
        "Output throughput, tok/s": requests.output_throughput,
        "Total token throughput, tok/s": requests.total_token_throughput,
        "Goodput, req/s": requests.request_goodput,
        "TTFT p50, ms": requests.latency("ttft", "p50"),
        "TTFT p99, ms": requests.latency("ttft", "p99"),
        "TPOT p50, ms": requests.latency("tpot", "p50"),
        "ITL p99, ms": requests.latency("itl", "p99"),
        "E2EL p99, ms": requests.latency("e2el", "p99"),
    }


def steady_seconds(steady: SteadySummary) -> str:
    """Length of a stage's steady window."""
    return formats.UNKNOWN if steady.seconds is None else formats.number(steady.seconds)


def steady_mark(windows: Sequence[SteadySummary]) -> str:
    """A mark if one of the repetitions of a cell was not steady."""
    return f" {UNSTEADY}" if any(steady.start is None for steady in windows) else ""


def steady_lines(stages: Sequence[StageSummary]) -> list[str]:
    """Why stages had no steady state, one line for each reason."""
    labels: dict[str, list[str]] = {}
    for stage in stages:
        if stage.steady.start is None:
            labels.setdefault(str(stage.steady.reason), []).append(stage.label)
    several = len(stages) > 1
    return [f"steady     none{f' in {_named(names)}' if several else ''}: {reason}" for reason, names in labels.items()]


def _named(labels: Sequence[str]) -> str:
    return ", ".join(labels[:2]) if len(labels) <= 2 else f"{labels[0]} and {len(labels) - 1} more"
