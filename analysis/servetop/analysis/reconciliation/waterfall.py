"""The difference of one figure of two runs, as steps from that of A to that of B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from servetop.analysis.reconciliation.client_rows import ClientRows
from servetop.analysis.reconciliation.definitions import LATENCIES, ReconciledMetric
from servetop.core.units import MS_PER_S


class StepKind(StrEnum):
    """What a step from one figure to the other is about, in the order of the steps."""

    DEFINITION = "definition"
    WINDOW = "window"
    LOAD = "load"
    WORKLOAD = "workload"
    CACHE = "cache"
    CLIENT = "client"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceStep:
    """One step of a waterfall, in the unit of its metric; positive if it makes B's figure higher."""

    kind: StepKind
    effect: float | None
    """None if the files do not show it: it is part of what is unexplained."""
    low: float | None = None
    high: float | None = None
    """A 95 % interval; None if the step is a computation without chance, or if the requests are too few."""
    evidence: str
    """What the step rests on; if its effect is not known, what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceWaterfall:
    """The steps from A's figure to B's, which add up; latencies are in milliseconds, rates per second."""

    metric: ReconciledMetric
    a: float
    b: float
    steps: tuple[DifferenceStep, ...]
    unexplained_percent: float
    """The unexplained part as a percentage of the mean of both figures; positive if B is higher."""
    within_chance: bool | None
    """Whether the interval of the unexplained part includes 0; None without an interval."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReconciledRun:
    """One run of a load generator."""

    tool: str
    """As its makers spell it, as in `vLLM bench`."""
    rows: ClientRows
    reported: Mapping[str, float] = field(default_factory=dict)
    """What the tool itself wrote, by the keys of a summary; latencies in milliseconds."""
    closed: bool
    """Whether the client keeps a number of requests in flight rather than send at a rate."""
    concurrency: int | None = None


Runs = tuple[ReconciledRun, ReconciledRun]


def scale_of(metric: ReconciledMetric) -> float:
    """Return by what seconds, or rates, are multiplied for the unit of a metric."""
    return MS_PER_S if metric in LATENCIES else 1.0


def waterfall_of(
    metric: ReconciledMetric, steps: Sequence[DifferenceStep], *, a: float, b: float
) -> DifferenceWaterfall:
    """Return the waterfall between two figures, in the unit of the metric; the last step is what is unexplained."""
    last = steps[-1]
    middle = (abs(a) + abs(b)) / 2
    chance = None if last.low is None or last.high is None else last.low <= 0 <= last.high
    return DifferenceWaterfall(
        metric=metric,
        a=a,
        b=b,
        steps=tuple(steps),
        unexplained_percent=100 * (last.effect or 0.0) / middle if middle else 0.0,
        within_chance=chance,
    )
