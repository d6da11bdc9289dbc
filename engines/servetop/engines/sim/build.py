"""From names and overrides to a scheduler that is ready to run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from servetop.core.errors import UsageError
from servetop.engines.sim.blocks import BlockManager
from servetop.engines.sim.cost import CostModel, HostCost, OffloadedCostModel
from servetop.engines.sim.memory import kv_blocks
from servetop.engines.sim.policies.policy import PolicyParameters, make_policy
from servetop.engines.sim.prefix import PrefixCache
from servetop.engines.sim.profiles import (
    EngineProfile,
    GpuProfile,
    ModelProfile,
    load_engine,
    load_gpu,
    load_model,
)
from servetop.engines.sim.scheduler import Limits, Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class SimSpec:
    """Everything that defines one simulated engine. Zero or None: as the profiles say."""

    gpu: GpuProfile
    model: ModelProfile
    engine: EngineProfile
    max_num_seqs: int = 0
    kv_blocks: int | None = None
    max_model_len: int = 0
    tensor_parallel: int = 1
    time_scale: float = 1.0
    host: HostCost = field(default_factory=HostCost)

    @property
    def context_limit(self) -> int:
        """Longest prompt plus output, in tokens."""
        return min(self.max_model_len or self.model.max_model_len, self.model.max_model_len)

    @property
    def batched_tokens(self) -> int:
        """Tokens that one iteration may compute."""
        return self.engine.batched_tokens(self.context_limit)

    @property
    def batch_limit(self) -> int:
        """max_num_seqs that applies."""
        return self.max_num_seqs or self.engine.max_num_seqs


def sim_spec(model: str, *, gpu: str, engine: str, **overrides: object) -> SimSpec:
    """A spec from profile names; the overrides are fields of SimSpec or of EngineProfile (`policy`, `block_size`…)."""
    profile = load_engine(engine)
    own = {each.name for each in dataclasses.fields(SimSpec)}
    profile_keys = {key: value for key, value in overrides.items() if key not in own}
    profile = dataclasses.replace(profile, **profile_keys)  # type: ignore[arg-type]
    host = HostCost(per_step=profile.c0, per_sequence=profile.c1)
    rest = {key: value for key, value in overrides.items() if key in own}
    return SimSpec(gpu=load_gpu(gpu), model=load_model(model), engine=profile, host=host, **rest)  # type: ignore[arg-type]


def build_scheduler(spec: SimSpec) -> Scheduler:
    """A scheduler with an empty queue; UsageError when the model does not fit or a number makes no sense."""
    _check(spec)
    engine = spec.engine
    parameters = PolicyParameters(
        watermark=engine.watermark,
        decode_slack=engine.decode_slack,
        batch_timeout=engine.batch_timeout * spec.time_scale,
        max_model_len=spec.context_limit,
    )
    policy = make_policy(engine.policy, parameters)
    cost_model = OffloadedCostModel if policy.offloaded else CostModel
    cost = cost_model(
        spec.gpu, spec.model, host=spec.host, tensor_parallel=spec.tensor_parallel, time_scale=spec.time_scale
    )
    blocks = BlockManager(block_count(spec), block_size=engine.block_size)
    limits = Limits(max_num_seqs=spec.batch_limit, max_num_batched_tokens=spec.batched_tokens)
    prefix = PrefixCache(blocks) if engine.prefix_cache else None
    return Scheduler(policy, blocks, cost=cost, limits=limits, prefix=prefix)


def block_count(spec: SimSpec) -> int:
    """KV blocks of the engine: the override, or what fits into the GPU."""
    if spec.kv_blocks is not None:
        return spec.kv_blocks
    return kv_blocks(
        spec.gpu,
        spec.model,
        spec.engine,
        batched_tokens=spec.batched_tokens,
        tensor_parallel=spec.tensor_parallel,
    )


def _check(spec: SimSpec) -> None:
    positive = {
        "max_num_seqs": spec.batch_limit,
        "block_size": spec.engine.block_size,
        "max_model_len": spec.context_limit,
        "time_scale": spec.time_scale,
        "kv_blocks": 1 if spec.kv_blocks is None else spec.kv_blocks,
        "max_num_batched_tokens": spec.batched_tokens,
    }
    for name, value in positive.items():
        if value <= 0:
            raise UsageError(f"{name} must be above 0, not {value}")
    if spec.tensor_parallel not in range(1, 9) or spec.model.heads % spec.tensor_parallel:
        raise UsageError(
            f"tensor_parallel={spec.tensor_parallel} does not divide the {spec.model.heads} heads of "
            f"{spec.model.name}: try 1, 2, 4 or 8"
        )
    if spec.max_model_len > spec.model.max_model_len:
        raise UsageError(
            f"max_model_len={spec.max_model_len} is above the {spec.model.max_model_len} of {spec.model.name}"
        )
