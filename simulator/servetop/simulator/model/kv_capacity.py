"""KV cache size: how many blocks fit beside the weights, and the error if they are too few."""

from __future__ import annotations

import dataclasses

from servetop.core.errors import UsageError
from servetop.simulator.model.settings import SimSpec

GB = 1e9
GIB = 2.0**30
TENSOR_PARALLEL_CHOICES = (1, 2, 4, 8)


def activation_bytes(spec: SimSpec) -> float:
    """Peak of the memory-profiling run: T*2 B*(3*d_ff + 3*hidden) of fp16 buffers, and 1 MiB per layer."""
    model = spec.model
    buffers = 3 * model.ffn / spec.tensor_parallel + 3 * model.hidden
    return _profiled_tokens(spec) * 2 * buffers + model.layers * 2.0**20


def kv_blocks(spec: SimSpec) -> int:
    """floor((util*memory - weights - activations) / (block_size*kv)) of one device, which holds 1/tp of everything.

    UsageError if not even one sequence of the maximum length fits; the message suggests a configuration that fits.
    """
    block = spec.engine.block_size * spec.model.kv_bytes_per_token / spec.tensor_parallel
    count = max(int(_free_bytes(spec) // block), 0)
    if count * spec.engine.block_size < spec.context_limit:
        raise UsageError(_does_not_fit(spec, tokens=count * spec.engine.block_size))
    return count


def host_blocks(spec: SimSpec) -> int:
    """KV blocks in host memory beside the weights, when both are offloaded."""
    free = spec.gpu.host_memory_bytes * spec.engine.memory_utilization - spec.model.weight_bytes
    count = int(free // (spec.engine.block_size * spec.model.kv_bytes_per_token))
    if count < 1:
        raise UsageError(
            f"{spec.model.name} in fp16 needs {spec.model.weight_bytes / GB:.0f} GB of host memory for offloaded "
            f"weights; the host of {spec.gpu.name} has {spec.gpu.host_memory_bytes / GB:.0f} GB: take a smaller model"
        )
    return count


def _profiled_tokens(spec: SimSpec) -> int:
    """Tokens of the largest iteration for which the engine allocates buffers."""
    return spec.batch_limit * spec.engine.padded_input_tokens or spec.batched_tokens


def _free_bytes(spec: SimSpec) -> float:
    occupied = spec.model.weight_bytes / spec.tensor_parallel + activation_bytes(spec)
    if spec.engine.memory_share == "free":
        return spec.engine.memory_utilization * (spec.gpu.memory_bytes - occupied)
    return spec.engine.memory_utilization * spec.gpu.memory_bytes - occupied


def _does_not_fit(spec: SimSpec, *, tokens: int) -> str:
    model, gpu = spec.model, spec.gpu
    devices = f"{spec.tensor_parallel} x " if spec.tensor_parallel > 1 else ""
    has = f"{devices}{gpu.name} has {gpu.memory_bytes / GIB:.1f} GiB"
    devices_needed = _sufficient_devices(spec)
    advice = f"try tensor_parallel={devices_needed}" if devices_needed else "try a larger GPU or a smaller model"
    needs = f"{model.name} in fp16 needs {model.weight_bytes / GB:.0f} GB for weights"
    if model.weight_bytes / spec.tensor_parallel > gpu.memory_bytes * spec.engine.memory_utilization:
        return f"{needs}; {has}: {advice}"
    if tokens:
        advice += f", or max_model_len={tokens}"
    return (
        f"{needs} and {activation_bytes(spec) / GB:.1f} GB for activations of {_profiled_tokens(spec)} tokens; {has}, "
        f"which leaves KV blocks for {tokens} tokens, less than one sequence of {spec.context_limit}: {advice}"
    )


def _sufficient_devices(spec: SimSpec) -> int | None:
    """Return the smallest larger tensor parallelism at which one sequence of the maximum length fits."""
    for choice in TENSOR_PARALLEL_CHOICES:
        wider = dataclasses.replace(spec, tensor_parallel=choice)
        required = spec.context_limit * spec.model.kv_bytes_per_token / choice
        divides = spec.model.heads % choice == 0
        if choice > spec.tensor_parallel and divides and _free_bytes(wider) >= required:
            return choice
    return None
