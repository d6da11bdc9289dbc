"""The environment variables and command line of an engine, as a manifest has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

PREFIXES = (
    "VLLM_", "SGLANG_", "SGL_", "TRTLLM_", "TLLM_", "TENSORRT_", "LLAMA_", "GGML_", "TRITON_", "FLASHINFER_", "RAY_",
    "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "CUDA_", "NVIDIA_", "NCCL_", "HIP_", "ROCR_", "ROCM_", "HSA_", "RCCL_",
    "GLOO_", "UCX_", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "DS_",
)  # fmt: skip
NAMES = frozenset({
    "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "TOKENIZERS_PARALLELISM", "LD_PRELOAD", "MALLOC_ARENA_MAX",
})  # fmt: skip
"""Variables that affect an engine, besides those that begin with one of PREFIXES."""
PORT = "{port}"
"""Stands for a port, which differs from start to start."""
_DEVICE_ID = re.compile(r"\b(GPU|MIG)-[0-9A-Fa-f][0-9A-Fa-f/-]+")
_PORT_OPTION = re.compile(r"--?(?:[\w-]*[_-])?port")
_PORT_VALUE = re.compile(r"(--?(?:[\w-]*[_-])?port=)\d+")


def engine_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that affect an engine, without the ids of devices; secrets are still in them."""
    return {
        name: _DEVICE_ID.sub(r"\1-{id}", value)
        for name, value in sorted(environment.items())
        if name in NAMES or name.startswith(PREFIXES)
    }


def stable_argv(argv: Sequence[str], *, port: int | None) -> list[str]:
    """Return a command line with PORT for the server's `port` and for the value of every option for a port."""
    stable: list[str] = []
    address = None if port is None else re.compile(rf"(?<=[:-]){port}(?!\d)")
    for word in argv:
        follows_option = bool(stable) and _PORT_OPTION.fullmatch(stable[-1]) is not None
        if follows_option and word.isdecimal():
            stable.append(PORT)
            continue
        named = _PORT_VALUE.sub(rf"\1{PORT}", word)
        stable.append(named if address is None else address.sub(PORT, named))
    return stable
