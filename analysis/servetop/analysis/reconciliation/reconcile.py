"""Explains the figures of two load generators that measured one server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servetop.analysis.reconciliation.definitions import LATENCIES, THROUGHPUTS, ReconciledMetric
from servetop.analysis.reconciliation.latency_steps import latency_waterfall
from servetop.analysis.reconciliation.steady_part import steady_parts
from servetop.analysis.reconciliation.throughput_steps import throughput_waterfall
from servetop.analysis.reconciliation.waterfall import DifferenceWaterfall, ReconciledRun, StepKind

NAMES = {
    ReconciledMetric.TTFT: "mean TTFT",
    ReconciledMetric.TPOT: "mean TPOT",
    ReconciledMetric.ITL: "mean ITL",
    ReconciledMetric.E2EL: "mean E2EL",
    ReconciledMetric.OUTPUT_THROUGHPUT: "output tok/s",
    ReconciledMetric.REQUEST_THROUGHPUT: "throughput req/s",
}
_MOST_REASONS = 3
_LEAST_PERCENT = 0.5
"""Part of a figure below which a step is not named as a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Why the figures of two runs differ."""

    waterfalls: tuple[DifferenceWaterfall, ...]
    missing: tuple[ReconciledMetric, ...]
    """Figures that one of the runs does not have, or of fewer than 30 requests."""
    conclusion: str
    """The largest reasons, and what is left, in one sentence without its period."""


def reconcile(a: ReconciledRun, b: ReconciledRun) -> Reconciliation:
    """Return the steps from each figure of A to that of B."""
    runs, parts = (a, b), steady_parts(a.rows, b.rows)
    latencies = {each: latency_waterfall(each, runs, parts) for each in LATENCIES}
    e2el = latencies[ReconciledMetric.E2EL]
    rates = {each: throughput_waterfall(each, runs, parts, e2el) for each in THROUGHPUTS}
    found = {**latencies, **rates}
    waterfalls = tuple(each for each in found.values() if each is not None)
    return Reconciliation(
        waterfalls=waterfalls,
        missing=tuple(name for name, each in found.items() if each is None),
        conclusion=conclusion_of(waterfalls),
    )


def conclusion_of(waterfalls: Sequence[DifferenceWaterfall]) -> str:
    """Return the largest reasons and what is left of some waterfalls, in one sentence without its period."""
    if not waterfalls:
        return "no figure is known of both runs from at least 30 completed requests each"
    steps = [(abs(percent_of(each, step.effect)), each, step) for each in waterfalls for step in each.steps[:-1]]
    largest: dict[StepKind, str] = {}
    for size, each, step in sorted(steps, key=lambda found: -found[0]):
        if size >= _LEAST_PERCENT and step.kind not in largest:
            largest[step.kind] = f"{step.kind} ({percent_of(each, step.effect):+.1f} % of the {NAMES[each.metric]})"
    reasons = list(largest.values())[:_MOST_REASONS]
    named = f"largest reasons: {', '.join(reasons)}" if reasons else "no step is 0.5 % of a figure or more"
    return f"{named}; {_left(waterfalls)}"


def percent_of(waterfall: DifferenceWaterfall, effect: float | None) -> float:
    """Return an effect as a percentage of the mean of both figures; 0 for one that is not known."""
    middle = (abs(waterfall.a) + abs(waterfall.b)) / 2
    return 100 * effect / middle if effect is not None and middle else 0.0


def _left(waterfalls: Sequence[DifferenceWaterfall]) -> str:
    worst = max(waterfalls, key=lambda each: abs(each.unexplained_percent))
    size = f"{worst.unexplained_percent:+.1f} % of the {NAMES[worst.metric]}"
    beyond = [NAMES[each.metric] for each in waterfalls if each.within_chance is False]
    if not beyond:
        return f"unexplained: at most {size}, within chance"
    return f"unexplained: at most {size}, more than chance explains of {', '.join(beyond)}"
