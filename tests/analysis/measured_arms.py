"""Measured recordings of configurations with the fields relevant to a test."""

from __future__ import annotations

from typing import Any

from servetop.analysis.comparison.alignment import ArmRun
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.reports.comparison.measured_arm import MeasuredArm, MeasuredRun
from tests.analysis.measured_conditions import conditions

FACTS = EngineFacts(name="vllm", title="vLLM", version="0.9.1", model="llama-2-7b")
ENDED = RunEnd(at=60.0, exit_code=0, reason="")
CONFIG = RunConfig(
    engine=EngineConfig(name="vllm"),
    workload=WorkloadConfig(input_len=128, output_len=64),
    stages=(StageConfig(request_rate=8.0, duration=60.0),),
    seed=1,
    label="",
)


def run(name: str, config: RunConfig = CONFIG, facts: EngineFacts = FACTS, **fields: Any) -> MeasuredRun:
    header = RunHeader(config=config, anchor=ClockAnchor(origin_ns=0, wall_epoch_s=1_763_921_160.0), engine=facts)
    values: dict[str, Any] = {"seconds": 60.0, "end": ENDED}
    values |= {"arm": ArmRun(name=name, stages=()), "conditions": conditions()} | fields
    return MeasuredRun(path=f"runs/{name}.servetop", header=header, **values)


def arm(letter: str, *runs: MeasuredRun) -> MeasuredArm:
    return MeasuredArm(letter=letter, runs=runs)
