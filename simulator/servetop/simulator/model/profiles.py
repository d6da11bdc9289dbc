"""Profiles of GPUs, models and engine generations: one TOML file each, shipped or in a user's folder.

Every file has a table `sources` that gives the source of each number by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProfile:
    """One GPU. Rates are peak values per second from the data sheet; efficiencies are achieved fractions, 0..1."""

    name: str
    memory_bytes: float
    """Total memory as CUDA reports it."""
    host_memory_bytes: float = 208e9
    """Host memory for offloading; the default is that of FlexGen's evaluation machine (paper, section 6)."""
    bandwidth: float
    """Bytes/s of device memory."""
    flops: float
    """Dense fp16 tensor FLOP/s."""
    host_bandwidth: float
    """Bytes/s over PCIe, one direction."""
    link_bandwidth: float
    """Bytes/s between two devices of one host, one direction."""
    link_latency: float
    """Seconds of one all-reduce of a few bytes."""
    compute_efficiency: float = 0.71
    memory_efficiency: float = 0.80
    kv_efficiency: float = 0.80
    roofline_power: float = 3.0
    """Exponent p of the soft roofline: the sharpness of the transition from memory-bound to compute-bound."""
    tile: int = 128
    """Rows of one GEMM tile; the token count is rounded up to a multiple of it."""
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """One dense decoder-only transformer."""

    name: str
    hub_name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    """Inner size of the feed-forward network (d_ff)."""
    parameters: float
    """All weights, embeddings included."""
    gemm_parameters: float
    """Weights read in each step: all except the input embedding, unless the output head shares it."""
    max_model_len: int
    dtype_bytes: int = 2
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights."""
        return self.parameters * self.dtype_bytes

    @property
    def gemm_weight_bytes(self) -> float:
        """Weight bytes read in each step (W in the cost model)."""
        return self.gemm_parameters * self.dtype_bytes

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the keys and values of one token in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.dtype_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """One engine generation: scheduling policy, limits and host time."""

    name: str
    policy: str
    c0: float = 0.0
    """Host seconds per iteration."""
    c1: float = 0.0
    """Host seconds per sequence and iteration."""
    max_num_seqs: int = 256
    block_size: int = 16
    prefix_cache: bool = False
    watermark: float = 0.0
    """Fraction of the blocks that admission leaves free."""
    memory_utilization: float = 0.9
    """Fraction of the device memory that the engine uses; `memory_share` selects which memory."""
    memory_share: str = "total"
    """`total`: fraction of all memory, including weights and activations (vLLM); `free`: of the rest (TensorRT-LLM)."""
    padded_input_tokens: int = 0
    """Prompt length for which the engine build allocates buffers of a whole batch; 0: packed inputs."""
    max_num_batched_tokens: int = 0
    """Token budget of one iteration; 0: the larger of max_model_len and 2048."""
    decode_slack: int = 0
    """Free blocks that a decode step requires in addition to those that it allocates."""
    batch_timeout: float = 0.0
    """Seconds that dynamic batching waits for a batch to fill."""
    version: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def batched_tokens(self, max_model_len: int) -> int:
        """Maximum tokens per iteration."""
        return self.max_num_batched_tokens or max(max_model_len, 2048)
