"""Random machines and workloads of the scenarios."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from random import Random
from typing import Any

from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.judgement.constant_rates import ConstantRates

MACHINES = (
    ("llama-2-7b", "a100-40"), ("llama-2-7b", "l4"), ("llama-2-7b", "h100"), ("llama-3-8b", "a100-40"),
    ("llama-3-8b", "rtx4090"), ("llama-3.1-8b", "h200"), ("llama-2-13b", "a100-80"), ("mistral-7b", "a10g"),
    ("mistral-7b", "h100"), ("qwen2.5-7b", "rtx4090"), ("qwen2.5-7b", "a100-80"), ("llama-2-13b", "h100"),
)  # fmt: skip
"""Models and GPUs that hold their weights."""
ENGINES = ("vllm-0.2.1", "vllm-0.5", "vllm-0.6", "vllm-current", "sglang-current", "tensorrt-llm-2024")
CONTEXT = 4096
OBJECTIVES = (0.5, 0.5, 1.0)
"""Longest TTFT in seconds."""
Span = tuple[int, int]


def draw_workload(random: Random, *, inputs: Span, outputs: Span, bursty: bool = False) -> WorkloadConfig:
    """Draw a distribution of lengths with means in these spans, and an arrival process that can follow a ramp."""
    input_len, output_len = random.randint(*inputs), random.randint(*outputs)
    shape = random.choice(("fixed", "uniform", "lognormal"))
    lengths: dict[str, Any] = {}
    if shape == "uniform":
        lengths["range_ratio"] = random.choice((0.2, 0.5))
    elif shape == "lognormal":
        caps = f"input_cap={min(4 * input_len, 3000)},output_cap={min(4 * output_len, 1000)}"
        lengths["lengths"] = f"lognormal:input_sigma=0.6,output_sigma=0.6,{caps}"
    arrivals: dict[str, Any] = random.choice(({}, {}, {"arrivals": "constant"}, {"burstiness": 2.0}))
    if bursty:
        arrivals = {"burstiness": random.uniform(0.3, 0.6)}
    return WorkloadConfig(input_len=input_len, output_len=output_len, **lengths, **arrivals)


def draw_base(
    random: Random,
    workload: WorkloadConfig,
    *,
    engines: tuple[str, ...] = ENGINES,
    settings: Mapping[str, Any] | None = None,
) -> ConstantRates:
    """Draw a machine and an engine for a workload."""
    model, gpu = random.choice(MACHINES)
    return ConstantRates(
        model=model,
        gpu=gpu,
        engine_profile=random.choice(engines),
        settings={"max_model_len": CONTEXT, **(settings or {})},
        workload=workload,
        objective=random.choice(OBJECTIVES),
        seed=random.randrange(1 << 20),
    )


def plan_of(base: ConstantRates, name: str, stages: tuple[StageConfig, ...], **parts: Any) -> VirtualRunPlan:
    """The plan of a run with these stages; `parts` are other fields of the plan, or another `workload`."""
    workload: WorkloadConfig = parts.pop("workload", base.workload)
    config = RunConfig(
        engine=EngineConfig(model=base.model),
        workload=workload,
        stages=tuple(_rounded(stage) for stage in stages),
        seed=base.seed,
        goodput={"ttft": base.objective, **({} if math.isinf(base.tpot) else {"tpot": base.tpot})},
        drain_timeout=60.0,
        label=name,
    )
    return VirtualRunPlan(
        config=config, gpu=base.gpu, engine_profile=base.engine_profile, settings=base.settings, **parts
    )


def _rounded(stage: StageConfig) -> StageConfig:
    start = None if stage.ramp_from is None else float(f"{stage.ramp_from:.3g}")
    return dataclasses.replace(stage, request_rate=float(f"{stage.request_rate:.3g}"), ramp_from=start)
