"""What defines a run: frozen, built once by the command line, written as the recording's header and `--config` files.

`to_data` and `from_data` go to and from plain dictionaries, lists, numbers and strings (JSON, TOML).
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from servetop.core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Which engine to start, or, with `url`, to attach to."""

    name: str = "sim"
    """An entry point of group `servetop.engines`; `auto` recognises whatever answers at `url`."""
    model: str = "llama-2-7b"
    """As the user wrote it: an alias, a hub name or a local path; empty when attached: the server's first model."""
    url: str | None = None
    port: int | None = None
    """Port for an engine that servetop starts; None takes a free one."""
    max_num_seqs: int | None = None
    """The engine's batch-size limit; None leaves the engine's default."""
    extra_args: tuple[str, ...] = ()
    """Passed to the engine's own command line as they are."""
    command: tuple[str, ...] = ()
    """Replaces the engine's own executable, as in `/opt/venv/bin/python -m vllm.entrypoints.openai.api_server`."""
    start_timeout: float = 1800.0
    """Seconds that loading may take."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key; the key itself is never stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadConfig:
    """What each request asks for, and how requests are spaced."""

    input_len: int = 128
    """Prompt tokens."""
    output_len: int = 128
    """Most output tokens (exactly so many with `ignore_eos`)."""
    burstiness: float = 1.0
    """Gamma shape of the gaps between requests: 1 is Poisson, below 1 burstier, inf constant."""
    ignore_eos: bool = True
    endpoint: str = "completions"
    """`completions` or `chat`."""
    temperature: float | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 600.0
    """Seconds after which an unfinished request is given up."""
    store_texts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageConfig:
    """One constant load. It ends after `duration` seconds or `num_prompts` requests, whichever comes first."""

    request_rate: float = math.inf
    """Requests per second; inf sends whenever the concurrency allows."""
    max_concurrency: int | None = None
    max_num_seqs: int | None = None
    """Batch size wanted of the engine; None keeps what is in force."""
    duration: float | None = None
    num_prompts: int | None = None
    repeat: int = 0

    @property
    def label(self) -> str:
        """Short name for tables and the screen, such as `8 req/s · batch 64`."""
        rate = "all at once" if math.isinf(self.request_rate) else f"{self.request_rate:g} req/s"
        parts = [rate]
        if self.max_num_seqs is not None:
            parts.append(f"batch {self.max_num_seqs}")
        if self.max_concurrency is not None:
            parts.append(f"conc. {self.max_concurrency}")
        return " · ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A whole run."""

    engine: EngineConfig = EngineConfig()
    workload: WorkloadConfig = WorkloadConfig()
    stages: tuple[StageConfig, ...] = ()
    seed: int = 0
    goodput: Mapping[str, float] = field(default_factory=dict)
    """Service-level objectives by metric (`ttft`, `tpot`, `e2el`), in seconds."""
    thresholds: tuple[str, ...] = ()
    """Conditions on keys of the summary, such as `p99_ttft_ms<=500`; unmet: exit code 99."""
    drain_at_stages: bool = False
    """Let all requests of a stage finish before the next one starts (sweeps)."""
    drain_timeout: float = 120.0
    """Seconds that requests in flight get to finish at the end."""
    label: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


def to_data(config: object) -> Any:
    """Plain data: what is None is left out; infinity becomes the string `inf`, as JSON has none."""
    if dataclasses.is_dataclass(config):
        pairs = ((each.name, getattr(config, each.name)) for each in dataclasses.fields(config))
        return {name: to_data(value) for name, value in pairs if value is not None}
    if isinstance(config, Mapping):
        return {str(key): to_data(value) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return [to_data(value) for value in config]
    return "inf" if isinstance(config, float) and math.isinf(config) else config


_Config = TypeVar("_Config")


def from_data(kind: type[_Config], data: Mapping[str, Any], *, strict: bool = True, where: str = "config") -> _Config:
    """Build a config dataclass; UsageError names an unknown key and the nearest valid one, or a wrong type.

    With `strict=False` unknown keys are ignored (a header written by a newer version).
    """
    hints = typing.get_type_hints(kind)
    if not isinstance(data, Mapping):
        raise UsageError(f"{where}: expected a table of {', '.join(hints)}")
    unknown = [key for key in data if key not in hints]
    if unknown and strict:
        near = difflib.get_close_matches(unknown[0], hints, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(hints)}"
        raise UsageError(f"{where}: unknown key {unknown[0]!r}: {hint}")
    known = {key: value for key, value in data.items() if key in hints}
    return kind(**{key: _value(hints[key], value, strict, f"{where}.{key}") for key, value in known.items()})


def _value(hint: Any, value: Any, strict: bool, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        inner = next(each for each in arguments if each is not type(None))
        return None if value is None else _value(inner, value, strict, where)
    if dataclasses.is_dataclass(hint):
        return from_data(typing.cast("type[Any]", hint), value, strict=strict, where=where)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_value(arguments[0], each, strict, where) for each in value)
    if origin is Mapping and isinstance(value, Mapping):
        return {str(key): _value(arguments[1], each, strict, where) for key, each in value.items()}
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float and (value == "inf" or (isinstance(value, int | float) and not isinstance(value, bool))):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    raise UsageError(f"{where}: {value!r} is no {getattr(hint, '__name__', hint)}")
