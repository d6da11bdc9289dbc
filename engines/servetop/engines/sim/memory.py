"""How many KV blocks fit beside the weights, and the refusal when the weights alone do not."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from servetop.core.errors import UsageError
from servetop.engines.sim.profiles import EngineProfile, GpuProfile, ModelProfile

GB = 1e9
GIB = 2.0**30
TENSOR_PARALLEL_CHOICES = (1, 2, 4, 8)


def activation_bytes(model: ModelProfile, *, batched_tokens: int, tensor_parallel: int = 1) -> float:
    """Peak of the memory-profiling run: fp16 buffers of gate, up and act, hidden states, and 1 MiB a layer."""
    buffers = 3 * model.ffn / tensor_parallel + 3 * model.hidden
    return batched_tokens * 2 * buffers + model.layers * 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What has to fit: the batch's largest iteration and the longest sequence, on `tensor_parallel` devices."""

    batched_tokens: int
    max_model_len: int
    tensor_parallel: int = 1


def kv_blocks(gpu: GpuProfile, model: ModelProfile, engine: EngineProfile, *, footprint: Footprint) -> int:
    """floor((util*memory - weights - activations) / (block_size*kv)) of one device, which holds 1/tp of everything.

    UsageError says what is missing, and what would do.
    """
    free = _free_bytes(gpu, model, engine, footprint=footprint)
    block = engine.block_size * model.kv_bytes_per_token / footprint.tensor_parallel
    count = max(int(free // block), 0)
    if count * engine.block_size < footprint.max_model_len:
        raise UsageError(_refusal(gpu, model, engine, footprint=footprint, blocks=count))
    return count


def host_blocks(gpu: GpuProfile, model: ModelProfile, engine: EngineProfile) -> int:
    """KV blocks in host memory beside the weights, when both are offloaded."""
    free = gpu.host_memory_bytes * engine.memory_utilization - model.weight_bytes
    count = int(free // (engine.block_size * model.kv_bytes_per_token))
    if count < 1:
        raise UsageError(
            f"{model.name} in fp16 needs {model.weight_bytes / GB:.0f} GB of host memory for offloaded weights; "
            f"the host of {gpu.name} has {gpu.host_memory_bytes / GB:.0f} GB: take a smaller model"
        )
    return count


def _free_bytes(gpu: GpuProfile, model: ModelProfile, engine: EngineProfile, *, footprint: Footprint) -> float:
    tp = footprint.tensor_parallel
    activations = activation_bytes(model, batched_tokens=footprint.batched_tokens, tensor_parallel=tp)
    taken = model.weight_bytes / tp + activations
    if engine.memory_share == "free":
        return engine.memory_utilization * (gpu.memory_bytes - taken)
    return engine.memory_utilization * gpu.memory_bytes - taken


def _refusal(gpu: GpuProfile, model: ModelProfile, engine: EngineProfile, *, footprint: Footprint, blocks: int) -> str:
    tp = footprint.tensor_parallel
    devices = f"{tp} x " if tp > 1 else ""
    has = f"{devices}{gpu.name} has {gpu.memory_bytes / GIB:.1f} GiB"
    more = _enough_devices(gpu, model, engine, footprint=footprint)
    advice = f"try tensor_parallel={more}" if more else "try a larger GPU or a smaller model"
    if model.weight_bytes / tp > gpu.memory_bytes * engine.memory_utilization:
        return f"{model.name} in fp16 needs {model.weight_bytes / GB:.0f} GB for weights; {has}: {advice}"
    activations = activation_bytes(model, batched_tokens=footprint.batched_tokens, tensor_parallel=tp)
    tokens = blocks * engine.block_size
    if tokens:
        advice += f", or max_model_len={tokens}"
    return (
        f"{model.name} in fp16 needs {model.weight_bytes / GB:.0f} GB for weights and {activations / GB:.1f} GB for "
        f"activations of {footprint.batched_tokens} tokens; {has}, which leaves KV blocks for {tokens} tokens, less "
        f"than one sequence of {footprint.max_model_len}: {advice}"
    )


def _enough_devices(gpu: GpuProfile, model: ModelProfile, engine: EngineProfile, *, footprint: Footprint) -> int | None:
    """The smallest larger tensor parallelism with which one longest sequence fits."""
    for choice in TENSOR_PARALLEL_CHOICES:
        wider = dataclasses.replace(footprint, tensor_parallel=choice)
        free = _free_bytes(gpu, model, engine, footprint=wider)
        wanted = footprint.max_model_len * model.kv_bytes_per_token / choice
        if choice > footprint.tensor_parallel and model.heads % choice == 0 and free >= wanted:
            return choice
    return None
