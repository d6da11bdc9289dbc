"""AIPerf's planner of `max-concurrency-under-sla` as a program of AIPerf's environment: it asks, and is told, in lines.

Each line of input begins a search (`search p95 2500`: percentile and limit in milliseconds), or is what a run showed
(the percentile in milliseconds). Each line of output asks for a run (`run 8 60 1000`: requests in flight, seconds of
warm-up, requests), or ends the search (`end 7 8 smooth_isotonic_precision_reached smooth`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

from aiperf.common.enums import OptimizationDirection
from aiperf.common.environment import Environment
from aiperf.common.models.export_models import JsonMetricResult
from aiperf.config.config import BenchmarkConfig
from aiperf.config.sweep import AdaptiveSearchSweep, Objective
from aiperf.config.sweep.adaptive import SearchSpaceDimension, SLAFilter
from aiperf.orchestrator.models import RunResult
from aiperf.orchestrator.search_planner.smooth_isotonic import SmoothIsotonicSLAPlanner
from aiperf.plugin.enums import SearchPlannerType
from aiperf.search_recipes._max_concurrency_under_sla import MaxConcurrencyUnderSLA

METRIC = "request_latency"


def planner_of(percentile: str, limit: float) -> SmoothIsotonicSLAPlanner:
    """Return the recipe's planner for one objective; `limit` in milliseconds."""
    recipe = MaxConcurrencyUnderSLA
    requests = Environment.SEARCH_PLANNER.SLA_PRECISION_REQUESTS["normal"]
    base = BenchmarkConfig.model_validate(
        {
            "models": ["m"],
            "endpoint": {"urls": ["http://localhost:8000"], "streaming": True},
            "datasets": [{"name": "main", "type": "synthetic", "entries": 10, "prompts": {"isl": 128, "osl": 128}}],
            "phases": [{"name": "profiling", "type": "concurrency", "concurrency": 1, "requests": requests}],
        }
    )
    space = SearchSpaceDimension(
        path=recipe._CONCURRENCY_PATH, lo=recipe._CONCURRENCY_LO, hi=recipe._CONCURRENCY_HI, kind="int"
    )
    objective = Objective(metric="output_token_throughput", stat="avg", direction=OptimizationDirection.MAXIMIZE)
    sweep = AdaptiveSearchSweep(
        planner=SearchPlannerType("smooth_isotonic"),
        search_space=[space],
        objectives=[objective],
        max_iterations=recipe._SMOOTH_ISOTONIC_MAX_ITERATIONS,
        n_initial_points=1,
        sla_filters=[SLAFilter(metric_tag=METRIC, stat=percentile, op="lt", threshold=limit)],
    )
    return SmoothIsotonicSLAPlanner(base, sweep)


def search(lines: Iterator[str], percentile: str, limit: float) -> str:
    """Ask for runs until the planner has converged, and return the line that ends the search."""
    planner = planner_of(percentile, limit)
    while (asked := planner.ask()) is not None:
        config, variation = asked
        phases: dict[str, Any] = {each.name: each for each in config.phases}
        profiling, warmup = phases["profiling"], phases.get("warmup")
        seconds = 0.0 if warmup is None else warmup.duration
        say(f"run {profiling.concurrency} {seconds:g} {profiling.requests}")
        seen = JsonMetricResult(unit="ms", **{percentile: float(next(lines))})
        planner.tell(variation, [RunResult(label="run", success=True, summary_metrics={METRIC: seen})])
    low, high = planner.feasible_max or 0, planner.infeasible_min or 0
    return f"end {low} {high} {planner.convergence_reason()} {planner.boundary_type or 'none'}"


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201


def main() -> None:
    """Answer searches until the input ends."""
    logging.disable(logging.CRITICAL)
    lines = iter(sys.stdin.readline, "")
    for line in lines:
        _, percentile, limit = line.split()
        say(search(lines, percentile, float(limit)))


if __name__ == "__main__":
    main()
