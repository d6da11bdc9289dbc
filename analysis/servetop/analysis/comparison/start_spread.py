"""How much the metrics of an engine are assumed to vary between its starts, where there are too few to measure it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from servetop.analysis.comparison.compared_metrics import ComparedMetric


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSpread:
    """Standard deviations between starts, as fractions of a metric."""

    latencies: float
    others: float
    """For throughput, goodput, energy and the engine's own metrics."""

    def of(self, metric: ComparedMetric) -> float:
        """Return the one of a metric."""
        return self.latencies if metric.latency else self.others

    @classmethod
    def everywhere(cls, fraction: float) -> StartSpread:
        """Return the same one for all metrics."""
        return cls(latencies=fraction, others=fraction)

    @classmethod
    def largest(cls, spreads: Iterable[StartSpread]) -> StartSpread:
        """Return the largest ones; none without any."""
        known = [*spreads]
        return cls(
            latencies=max((each.latencies for each in known), default=0.0),
            others=max((each.others for each in known), default=0.0),
        )


SAME = StartSpread.everywhere(0.0)
"""Of an engine that behaves the same after every start: the simulator in virtual time."""
ON_GPU = StartSpread.everywhere(0.01)
"""Of an engine whose GPUs are recorded: an assumption that was not measured."""
ELSEWHERE = StartSpread(latencies=0.2, others=0.05)
"""Of an engine whose GPUs are unknown, or that shares its processors with the client (the simulator in real time).

Chosen after 100 starts of vLLM on two processors gave too many false alarms with 1 %, and confirmed by 100 others
(docs/explanation/comparison.md).
"""
