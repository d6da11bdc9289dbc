"""The least time that one request alone can take: arithmetic of the prompt, and bytes read for each token.

TTFT: 2 FLOP per weight of the layers and token of the prompt at the peak of the GPUs, or one reading of the weights.
TPOT: one reading of the weights and of the keys and values of the context. Attention's own FLOPs, activations, links
between GPUs and host time are left out, so a server can only be slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.exported.gpu_peaks import GpuPeak, common_peak
from servetop.core.arrays import FloatArray
from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.core.interfaces.run_source import RunHeader
from servetop.engines.adapters.engine_flags import flag_value
from servetop.simulator.model.profile_files import load_gpu, load_model
from servetop.simulator.model.profiles import ModelProfile

SIMULATOR = "sim"
_ENGINES = (SIMULATOR, "vllm", "sglang")
"""Engines whose options say how many GPUs serve a request, and in which format the weights are."""
_FP16 = frozenset((None, "auto", "half", "float16", "bfloat16"))
_OTHER_BYTES = (
    "--quantization", "--kv-cache-dtype", "--speculative-config", "--speculative-model", "--speculative-algorithm",
    "--hf-overrides", "--torchao-config",
)  # fmt: skip
"""Options with which weights or keys and values have other sizes, or a step yields several tokens."""
_PARALLEL = (
    "--tensor-parallel-size", "--pipeline-parallel-size", "--tensor-parallel", "--tp", "--pp", "--tp-size", "--pp-size"
)  # fmt: skip
_FEW_HITS = 0.01
"""Hit rate of the prefix cache from which prompts are not computed as a whole."""
_SHORT = frozenset(("-tp", "-pp", "-q"))
"""Short options that change the number of GPUs or the format; their values are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalRequest:
    """The medians of the requests that succeeded; NaN if unknown."""

    prompt_tokens: float
    output_tokens: float

    @property
    def is_known(self) -> bool:
        """Whether both are known and there was something to compute."""
        return self.prompt_tokens > 0 and self.output_tokens > 0

    @classmethod
    def of(cls, requests: RequestColumns) -> TypicalRequest:
        """Return the medians of the requests of a summary's totals."""
        ok = requests.with_status(RequestStatus.OK)
        prompt, output = (_median(tokens[ok]) for tokens in (requests.prompt_tokens, requests.output_tokens))
        return cls(prompt_tokens=prompt, output_tokens=output)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFloor:
    """The lower bounds of a request, in seconds, and what they follow from."""

    gpu: GpuPeak
    gpus: int
    model: ModelProfile
    request: TypicalRequest
    ttft: float
    tpot: float
    prompt_is_computed: bool
    """Whether the bound of TTFT includes the arithmetic of the prompt, which a prefix cache saves."""

    @property
    def context(self) -> float:
        """Tokens whose keys and values a step reads, in the mean of the steps."""
        return self.request.prompt_tokens + self.request.output_tokens / 2


def request_floor(
    header: RunHeader, *, gpus: tuple[str, ...], request: TypicalRequest, hit_rate: float | None
) -> RequestFloor | None:
    """Return the lower bounds of a run; None if its GPU, model, number of GPUs or number formats are unknown.

    `gpus` are the names of the GPUs as the driver spells them, `hit_rate` is that of the prefix cache, 0 to 1.
    """
    engine = header.config.engine
    elsewhere = engine.url is not None or header.predicted or header.imported is not None
    if elsewhere or engine.name not in _ENGINES or not _is_fp16(engine):
        return None
    simulated = engine.name == SIMULATOR
    peak, model = _simulated_peak(engine) if simulated else common_peak(gpus), _model(header)
    count = _gpu_count(engine)
    if peak is None or model is None or count is None or not request.is_known:
        return None
    scale = float(flag_value(engine.extra_args, "--time-scale") or 1.0) if simulated else 1.0
    computed = not hit_rate or hit_rate < _FEW_HITS
    return _floor(model, peak, gpus=count, request=request, computed=computed, scale=scale)


def _floor(
    model: ModelProfile, peak: GpuPeak, *, gpus: int, request: TypicalRequest, computed: bool, scale: float
) -> RequestFloor:
    reading = scale * model.gemm_weight_bytes / (gpus * peak.bandwidth)
    arithmetic = scale * 2.0 * _layer_parameters(model) * request.prompt_tokens / (gpus * peak.flops)
    context = request.prompt_tokens + request.output_tokens / 2
    keys_and_values = scale * context * model.kv_bytes_per_token / (gpus * peak.bandwidth)
    return RequestFloor(
        gpu=peak,
        gpus=gpus,
        model=model,
        request=request,
        ttft=max(reading, arithmetic) if computed else reading,
        tpot=reading + keys_and_values,
        prompt_is_computed=computed and arithmetic > reading,
    )


def _layer_parameters(model: ModelProfile) -> float:
    """Return the weights that each token of a prompt needs: without the embedding and the output head."""
    embedding = model.parameters - model.gemm_parameters
    if embedding > 0:
        return model.gemm_parameters - embedding
    attention = 2 * model.hidden * model.head_dim * (model.heads + model.kv_heads)
    return float(model.layers * (attention + 2 * model.hidden * model.ffn))


def _gpu_count(engine: EngineConfig) -> int | None:
    """Return the GPUs that serve one request; None for a number that is not understood."""
    given = [text for flag in _PARALLEL if (text := flag_value(engine.extra_args, flag)) is not None]
    if not all(text.isdecimal() and int(text) for text in given):
        return None
    return math.prod(map(int, given))


def _is_fp16(engine: EngineConfig) -> bool:
    args = engine.extra_args
    other = any(flag_value(args, flag) is not None for flag in _OTHER_BYTES) or not _SHORT.isdisjoint(args)
    return not other and flag_value(args, "--dtype") in _FP16


def _model(header: RunHeader) -> ModelProfile | None:
    name = (header.engine and header.engine.model) or header.config.engine.model
    try:
        return None if not name or name.endswith(".toml") else load_model(name)
    except UsageError:
        return None


def _simulated_peak(engine: EngineConfig) -> GpuPeak | None:
    name = flag_value(engine.extra_args, "--gpu") or "a100-40"
    if name.endswith(".toml"):
        return None
    try:
        profile = load_gpu(name)
    except UsageError:
        return None
    return GpuPeak(profile.name, profile.flops, profile.bandwidth)


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if values.size else math.nan
