"""How many KV blocks fit beside the weights, and the refusal when the weights alone do not."""

from __future__ import annotations

from servetop.core.errors import UsageError
from servetop.engines.sim.profiles import EngineProfile, GpuProfile, ModelProfile

GB = 1e9
GIB = 2.0**30
TENSOR_PARALLEL_CHOICES = (1, 2, 4, 8)


def activation_bytes(model: ModelProfile, *, batched_tokens: int, tensor_parallel: int = 1) -> float:
    """Peak of the memory-profiling run: fp16 buffers of gate, up and act, hidden states, and 1 MiB a layer."""
    buffers = 3 * model.ffn / tensor_parallel + 3 * model.hidden
    return batched_tokens * 2 * buffers + model.layers * 2.0**20


def kv_blocks(
    gpu: GpuProfile,
    model: ModelProfile,
    engine: EngineProfile,
    *,
    batched_tokens: int,
    tensor_parallel: int = 1,
) -> int:
    """floor((util*memory - weights - activations) / (block_size*kv)) of one device, which holds 1/tp of everything.

    UsageError says what is missing, and the smallest tensor parallelism that would do.
    """
    free = _free_bytes(gpu, model, engine, batched_tokens=batched_tokens, tensor_parallel=tensor_parallel)
    block = engine.block_size * model.kv_bytes_per_token / tensor_parallel
    count = int(free // block)
    if count < 1:
        raise UsageError(_refusal(gpu, model, engine, batched_tokens=batched_tokens, tensor_parallel=tensor_parallel))
    return count


def _free_bytes(
    gpu: GpuProfile, model: ModelProfile, engine: EngineProfile, *, batched_tokens: int, tensor_parallel: int
) -> float:
    share = model.weight_bytes / tensor_parallel
    activations = activation_bytes(model, batched_tokens=batched_tokens, tensor_parallel=tensor_parallel)
    return engine.memory_utilization * gpu.memory_bytes - share - activations


def _refusal(
    gpu: GpuProfile, model: ModelProfile, engine: EngineProfile, *, batched_tokens: int, tensor_parallel: int
) -> str:
    for choice in TENSOR_PARALLEL_CHOICES:
        fits = _free_bytes(gpu, model, engine, batched_tokens=batched_tokens, tensor_parallel=choice) > 0
        if choice > tensor_parallel and fits:
            advice = f"try tensor_parallel={choice}"
            break
    else:
        advice = "try a larger GPU or a smaller model"
    devices = f"{tensor_parallel} x " if tensor_parallel > 1 else ""
    usable = engine.memory_utilization * gpu.memory_bytes / GIB
    return (
        f"{model.name} in fp16 needs {model.weight_bytes / GB:.0f} GB for weights; {devices}{gpu.name} has "
        f"{gpu.memory_bytes / GIB:.1f} GiB ({usable:.1f} of them for the engine): {advice}"
    )
