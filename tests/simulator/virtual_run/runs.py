"""Short virtual runs for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.histogram import LogHistogram
from servetop.core.tick import Tick
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, Outage, VirtualRunPlan

FREE = ClientCosts(per_request=0.0, per_chunk=0.0, per_beat=0.0)
"""An infinitely fast client."""


def plan_of(
    *stages: StageConfig,
    workload: WorkloadConfig | None = None,
    client: ClientCosts = FREE,
    outages: tuple[Outage, ...] = (),
    seed: int = 3,
    drain_timeout: float = 120.0,
    plan: Mapping[str, Any] | None = None,
    **settings: Any,
) -> VirtualRunPlan:
    """A run of llama-2-7b on an A100 with 128 tokens in and out.

    `plan` has other fields of the plan; `settings` are those of the engine.
    """
    config = RunConfig(
        engine=EngineConfig(model="llama-2-7b"),
        workload=workload or WorkloadConfig(),
        stages=stages,
        seed=seed,
        drain_timeout=drain_timeout,
    )
    return VirtualRunPlan(config=config, settings=settings, client=client, outages=outages, begin=0.0, **(plan or {}))


def total(ticks: Iterable[Tick], name: str) -> float:
    """The sum of a counter."""
    return float(sum(getattr(tick.client, name) for tick in ticks))


def merged(ticks: Iterable[Tick], name: str) -> LogHistogram:
    """The sum of a histogram."""
    return LogHistogram.merged(getattr(tick.client, name) for tick in ticks)
