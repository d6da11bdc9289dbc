"""Builds a scheduler from profile names and overrides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from servetop.core.errors import UsageError
from servetop.simulator.model.cost import CostModel, HostCost, OffloadedCostModel
from servetop.simulator.model.kv_blocks import BlockManager
from servetop.simulator.model.kv_capacity import host_blocks, kv_blocks
from servetop.simulator.model.profile_files import load_engine, load_gpu, load_model
from servetop.simulator.model.profiles import GpuProfile, ModelProfile
from servetop.simulator.model.settings import SimSpec, apply
from servetop.simulator.policies.policy import PolicyParameters, make_policy
from servetop.simulator.policies.scheduler_steps import Limits
from servetop.simulator.scheduling.prefix_cache import PrefixCache
from servetop.simulator.scheduling.scheduler import Scheduler


def sim_spec(model: str, *, gpu: str, engine: str, settings: Mapping[str, Any] | None = None) -> SimSpec:
    """Return the spec of these profiles; `settings.apply` documents the keys of `settings`."""
    spec = SimSpec(gpu=load_gpu(gpu), model=load_model(model), engine=load_engine(engine))
    return apply(spec, settings or {})


def build_scheduler(spec: SimSpec) -> Scheduler:
    """Return a scheduler with an empty queue; UsageError if the model does not fit or a number is invalid."""
    _check(spec)
    engine = spec.engine
    parameters = PolicyParameters(
        watermark=engine.watermark,
        decode_slack=engine.decode_slack,
        batch_timeout=engine.batch_timeout * spec.time_scale,
        max_model_len=spec.context_limit,
    )
    host = HostCost(per_step=engine.c0, per_sequence=engine.c1)
    policy = make_policy(engine.policy, parameters)
    cost_model = OffloadedCostModel if policy.offloaded else CostModel
    cost = cost_model(spec.gpu, spec.model, host=host, tensor_parallel=spec.tensor_parallel, time_scale=spec.time_scale)
    blocks = BlockManager(block_count(spec), block_size=engine.block_size)
    limits = Limits(
        max_num_seqs=spec.batch_limit,
        max_num_batched_tokens=spec.batched_tokens,
        max_model_len=spec.context_limit,
    )
    prefix = PrefixCache(blocks) if engine.prefix_cache else None
    return Scheduler(policy, blocks, cost=cost, limits=limits, prefix=prefix)


def block_count(spec: SimSpec) -> int:
    """Return the engine's KV blocks: the override, or as many as fit into the GPU."""
    if spec.kv_blocks is not None:
        return spec.kv_blocks
    return host_blocks(spec) if spec.engine.policy == "offload" else kv_blocks(spec)


def _check(spec: SimSpec) -> None:
    _check_numbers(spec)
    if spec.engine.memory_share not in ("total", "free"):
        raise UsageError(f"invalid memory_share {spec.engine.memory_share!r}: use total or free")
    if spec.tensor_parallel not in range(1, 9) or spec.model.heads % spec.tensor_parallel:
        raise UsageError(
            f"tensor_parallel={spec.tensor_parallel} does not divide the {spec.model.heads} heads of "
            f"{spec.model.name}: try 1, 2, 4 or 8"
        )
    if spec.context_limit > spec.model.max_model_len:
        raise UsageError(
            f"max_model_len={spec.context_limit} is above the {spec.model.max_model_len} of {spec.model.name}"
        )


def _check_numbers(spec: SimSpec) -> None:
    above_zero: dict[str, float] = {
        "max_num_seqs": spec.batch_limit,
        "max_model_len": spec.context_limit,
        "time_scale": spec.time_scale,
        "kv_blocks": 1 if spec.kv_blocks is None else spec.kv_blocks,
        "max_num_batched_tokens": spec.batched_tokens,
        "block_size": spec.engine.block_size,
        "memory_utilization": spec.engine.memory_utilization,
    }
    above_zero |= {f"gpu.{each.name}": value for each, value in _numbers(spec.gpu)}
    above_zero |= {f"model.{each.name}": value for each, value in _numbers(spec.model)}
    at_least_zero = {name: getattr(spec.engine, name) for name in ("c0", "c1", "decode_slack", "batch_timeout")}
    for name, value in above_zero.items():
        if not 0 < value < math.inf:
            raise UsageError(f"{name} must be above 0, not {value}")
    for name, value in at_least_zero.items():
        if not 0 <= value < math.inf:
            raise UsageError(f"{name} must be at least 0, not {value}")
    if not 0 <= spec.engine.watermark < 1:
        raise UsageError(f"watermark must be at least 0 and below 1, not {spec.engine.watermark}")


def _numbers(profile: GpuProfile | ModelProfile) -> list[tuple[dataclasses.Field[Any], float]]:
    values = [(each, getattr(profile, each.name)) for each in dataclasses.fields(profile)]
    return [(each, value) for each, value in values if isinstance(value, int | float)]
