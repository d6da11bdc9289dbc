"""Profiles of GPUs, models and engine generations: one TOML file each, shipped or in a user's folder.

Every file has a table `sources` that gives the source of each number by key.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from servetop.core.config import from_data
from servetop.core.errors import UsageError
from servetop.core.system.package_data import package_path

PROFILE_PATH_VARIABLE = "SERVETOP_PROFILES"
"""Environment variable with colon-separated folders that contain gpus/, models/ and engines/."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProfile:
    """One GPU. Rates are peak values per second from the data sheet; efficiencies are achieved fractions, 0..1."""

    name: str
    memory_bytes: float
    """Total memory as CUDA reports it."""
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
    host_memory_bytes: float = 208e9
    """Host memory for offloading; the default is that of FlexGen's evaluation machine (paper, section 6)."""
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
    prefix_cache: bool = False
    version: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def batched_tokens(self, max_model_len: int) -> int:
        """Maximum tokens per iteration."""
        return self.max_num_batched_tokens or max(max_model_len, 2048)


_Profile = TypeVar("_Profile", GpuProfile, ModelProfile, EngineProfile)


def load_gpu(name: str) -> GpuProfile:
    """Return the GPU profile of this name or TOML file."""
    return _load(GpuProfile, "gpus", name=name)


def load_model(name: str) -> ModelProfile:
    """Return the model profile of this name, hub name, TOML file or weights folder (by the folder's name)."""
    known = profile_names("models")
    if name.endswith(".toml") or name in known:
        return _load(ModelProfile, "models", name=name)
    folder = Path(name).name
    return _load(ModelProfile, "models", name=folder if folder in known else _name_of_hub_name(name))


def load_engine(name: str) -> EngineProfile:
    """Return the engine profile of this name or TOML file."""
    return _load(EngineProfile, "engines", name=name)


def profile_names(kind: str) -> list[str]:
    """Return the names of all profiles of a kind (`gpus`, `models`, `engines`)."""
    return sorted({path.stem for folder in _folders(kind) for path in folder.glob("*.toml")})


def _load(profile: type[_Profile], kind: str, *, name: str) -> _Profile:
    path = _find(kind, name)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: not a readable TOML file ({error})") from None
    try:
        return from_data(profile, {"name": path.stem} | data, where=str(path))
    except TypeError as error:
        missing = str(error).partition("argument")[2].lstrip("s: ")
        raise UsageError(f"{path}: missing {missing}") from None


def _find(kind: str, name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    for folder in _folders(kind):
        path = folder / f"{name}.toml"
        if path.is_file():
            return path
    known = profile_names(kind)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    raise UsageError(f"no {kind[:-1]} profile {name!r}: {hint}")


def _folders(kind: str) -> list[Path]:
    user_folders = [Path(part) for part in os.environ.get(PROFILE_PATH_VARIABLE, "").split(":") if part]
    return [folder / kind for folder in (*user_folders, package_path("servetop.simulator", "profiles"))]


def _name_of_hub_name(hub_name: str) -> str:
    """Return the name of the model profile with this hub name, or the hub name if there is none."""
    files = (path for folder in _folders("models") for path in sorted(folder.glob("*.toml")))
    return next((path.stem for path in files if _hub_name_in(path).lower() == hub_name.lower()), hub_name)


def _hub_name_in(path: Path) -> str:
    """Return a model file's hub name; empty for an unreadable file, which `_load` reports."""
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8")).get("hub_name", ""))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ""
