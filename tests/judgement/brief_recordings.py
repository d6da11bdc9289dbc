"""Recordings of short virtual runs, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import Outage, VirtualRunPlan
from tests.judgement.recordings import write_recording


def record_briefly(
    path: Path,
    *stages: StageConfig,
    seed: int = 1,
    settings: Mapping[str, Any] | None = None,
    goodput: Mapping[str, float] | None = None,
    outages: tuple[Outage, ...] = (),
    prices: tuple[str, ...] = (),
    **workload: Any,
) -> Path:
    """Record a virtual run of short requests; `settings` are those of the simulated machine."""
    lengths = {"input_len": 32, "output_len": 8} | workload
    config = RunConfig(
        engine=EngineConfig(),
        workload=WorkloadConfig(**lengths),
        stages=stages,
        seed=seed,
        goodput=goodput or {},
        prices=prices,
    )
    run = run_virtually(VirtualRunPlan(config=config, settings=settings or {}, outages=outages))
    write_recording(run, path)
    return path
