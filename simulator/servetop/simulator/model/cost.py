"""Duration of one iteration: a soft roofline over GEMM tiles, plus attention, plus host time.

    t_decode(B, C)  = g(B) + C*kv/(BW*e_kv) + c0 + c1*B            C: sum of the batch's context lengths
    t_prefill(lens) = g(sum lens) + attn + c0 + c1*len(lens)       attn = sum 2*l^2*layers*hidden/(F*e_c)
    t_fused         = g(B + sum lens) + attn + C*kv/(BW*e_kv) + c0 + c1*(B + len(lens))
    g(M) = [ (W/(BW*e_m))^p + (2*P*tile*n(M)/(F*e_c))^p ]^(1/p)    n(M) = 1/2 if M <= tile/2 else ceil(M/tile)

With tensor parallelism every device holds 1/tp of the weights, heads and KV, and each layer ends in two
all-reduces of M*hidden fp16 values over the link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from servetop.simulator.model.profiles import GpuProfile, ModelProfile
from servetop.simulator.model.work import PrefillChunk, on_grid


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCost:
    """Host time of the engine's own code: `per_step` (c0) and `per_sequence` (c1) seconds in each iteration."""

    per_step: float = 0.0
    per_sequence: float = 0.0


class CostModel:
    """Durations in seconds, on the time grid, of the iterations of one model on `tensor_parallel` equal GPUs."""

    def __init__(
        self,
        gpu: GpuProfile,
        model: ModelProfile,
        *,
        host: HostCost,
        tensor_parallel: int = 1,
        time_scale: float = 1.0,
    ) -> None:
        self.gpu = gpu
        self.model = model
        self.host = host
        self.tensor_parallel = tensor_parallel
        self.time_scale = time_scale
        self.kv_rate = on_grid(time_scale * self._kv_seconds_per_token())
        self._decode: dict[int, float] = {}

    def decode(self, sequences: int) -> float:
        """Return the seconds of one decode iteration of `sequences` sequences, excluding KV reads (see `kv_rate`)."""
        cached = self._decode.get(sequences)
        if cached is None:
            host = self.host.per_step + self.host.per_sequence * sequences
            cached = self._decode[sequences] = on_grid(self.time_scale * (self._linear(sequences) + host))
        return cached

    def prefill(self, chunks: Iterable[PrefillChunk]) -> float:
        """Return the seconds of one iteration that computes only these prompt chunks."""
        return self.fused(chunks, decoding=0, context=0)

    def fused(self, chunks: Iterable[PrefillChunk], *, decoding: int, context: int) -> float:
        """Return seconds of one iteration of prompt chunks and `decoding` sequences with `context` tokens in total."""
        tokens = squares = count = 0
        for chunk in chunks:
            end = chunk.start + chunk.tokens
            tokens += chunk.tokens
            squares += end * end - chunk.start * chunk.start
            context += chunk.start
            count += 1
        host = self.host.per_step + self.host.per_sequence * (decoding + count)
        seconds = self._linear(decoding + tokens) + self._attention(squares) + host
        return on_grid(self.time_scale * seconds) + context * self.kv_rate

    def swap(self, blocks: int, block_size: int) -> float:
        """Return the seconds to move `blocks` KV blocks between the GPU and host memory."""
        payload = blocks * block_size * self.model.kv_bytes_per_token / self.tensor_parallel
        return on_grid(self.time_scale * payload / self.gpu.host_bandwidth)

    def _kv_seconds_per_token(self) -> float:
        device_bytes = self.model.kv_bytes_per_token / self.tensor_parallel
        return device_bytes / (self.gpu.bandwidth * self.gpu.kv_efficiency)

    def _weight_seconds(self) -> float:
        device_bytes = self.model.gemm_weight_bytes / self.tensor_parallel
        return device_bytes / (self.gpu.bandwidth * self.gpu.memory_efficiency)

    def _linear(self, tokens: int) -> float:
        """Return the seconds of the GEMMs, g(M), and all-reduces of M tokens."""
        gpu = self.gpu
        tiles = 0.5 if tokens <= gpu.tile / 2 else -(-tokens // gpu.tile)
        flops = 2.0 * self.model.gemm_parameters * gpu.tile * tiles / self.tensor_parallel
        compute = flops / (gpu.flops * gpu.compute_efficiency)
        p = gpu.roofline_power
        return float((self._weight_seconds() ** p + compute**p) ** (1.0 / p)) + self._all_reduce(tokens)

    def _attention(self, squares: int) -> float:
        flops = 2.0 * squares * self.model.layers * self.model.hidden / self.tensor_parallel
        return flops / (self.gpu.flops * self.gpu.compute_efficiency)

    def _all_reduce(self, tokens: int) -> float:
        """Ring all-reduce: 2*(tp-1)/tp of the payload crosses each link, twice a layer, plus a fixed latency."""
        tp = self.tensor_parallel
        if tp == 1:
            return 0.0
        payload = tokens * self.model.hidden * self.model.dtype_bytes * 2 * (tp - 1) / tp
        return 2 * self.model.layers * (self.gpu.link_latency + payload / self.gpu.link_bandwidth)


class OffloadedCostModel(CostModel):
    """Weights stay in host memory and cross PCIe once an iteration, overlapped with compute (FlexGen's schedule)."""

    def _weight_seconds(self) -> float:
        device_bytes = self.model.gemm_weight_bytes / self.tensor_parallel
        return device_bytes / (self.gpu.host_bandwidth * self.gpu.memory_efficiency)

    def _kv_seconds_per_token(self) -> float:
        device_bytes = self.model.kv_bytes_per_token / self.tensor_parallel
        return device_bytes / (self.gpu.host_bandwidth * self.gpu.memory_efficiency)
