"""The specification of one simulated engine, and overrides by name (`--set KEY=VALUE`)."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from servetop.core.errors import UsageError
from servetop.simulator.model.profiles import EngineProfile, GpuProfile, ModelProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class SimSpec:
    """The specification of one simulated engine. None means the profile's value."""

    gpu: GpuProfile
    model: ModelProfile
    engine: EngineProfile
    tensor_parallel: int = 1
    max_num_seqs: int | None = None
    kv_blocks: int | None = None
    max_model_len: int | None = None
    time_scale: float = 1.0

    @property
    def context_limit(self) -> int:
        """Maximum tokens of a prompt and its output."""
        return self.max_model_len or self.model.max_model_len

    @property
    def batched_tokens(self) -> int:
        """Token budget of one iteration."""
        return self.engine.batched_tokens(self.context_limit)

    @property
    def batch_limit(self) -> int:
        """The `max_num_seqs` in effect."""
        return self.max_num_seqs or self.engine.max_num_seqs


ALIASES = {"tile": "gpu.tile", "bandwidth": "gpu.bandwidth", "flops": "gpu.flops"}
_Part = TypeVar("_Part", "SimSpec", GpuProfile, ModelProfile, EngineProfile)
_NOT_SETTABLE = {"name", "sources", "gpu", "model", "engine"}


def apply(spec: SimSpec, settings: Mapping[str, Any]) -> SimSpec:
    """Return the spec with these values set. UsageError names an unknown key and the closest known one.

    Keys are fields of SimSpec and EngineProfile (`kv_blocks`, `watermark`, `block_size`, `c0`, `policy`…), of the GPU
    and of the model (`gpu.bandwidth`, `model.layers`); `tile` is short for `gpu.tile`. Values may be text.
    """
    for name, value in settings.items():
        spec = _apply(spec, ALIASES.get(name, name), value=value)
    return spec


def setting_names() -> list[str]:
    """Return the keys that `apply` accepts."""
    return [
        *_settable(SimSpec),
        *_settable(EngineProfile),
        *(f"gpu.{name}" for name in _settable(GpuProfile)),
        *(f"model.{name}" for name in _settable(ModelProfile)),
    ]


def _apply(spec: SimSpec, key: str, *, value: Any) -> SimSpec:
    part, _, name = key.rpartition(".")
    if part in ("gpu", "model") and name in _settable(type(getattr(spec, part))):
        return dataclasses.replace(spec, **{part: _replace(getattr(spec, part), name, given=value)})
    if not part and name in _settable(SimSpec):
        return _replace(spec, name, given=value)
    if not part and name in _settable(EngineProfile):
        return dataclasses.replace(spec, engine=_replace(spec.engine, name, given=value))
    names = setting_names()
    close = difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(names)}"
    raise UsageError(f"no setting {key!r}: {hint}")


def _settable(kind: type[Any]) -> list[str]:
    return [each.name for each in dataclasses.fields(kind) if each.name not in _NOT_SETTABLE]


def _replace(value: _Part, name: str, *, given: Any) -> _Part:
    kind = get_type_hints(type(value))[name]
    try:
        return dataclasses.replace(value, **{name: _convert(given, kind)})
    except (TypeError, ValueError):
        raise UsageError(f"{name}={given}: expected {getattr(kind, '__name__', 'a whole number')}") from None


def _convert(given: Any, kind: Any) -> Any:
    if kind is str:
        return str(given)
    if kind is bool:
        if str(given).lower() not in ("true", "false", "1", "0"):
            raise ValueError(given)
        return str(given).lower() in ("true", "1")
    if given is None:
        return None
    number = float(given)
    if kind is float:
        return number
    if number != int(number):
        raise ValueError(given)
    return int(number)
