"""The configuration of a run: frozen, built once by the command line, stored in the header of the recording.

`to_data` and `from_data` convert to and from dictionaries, lists, numbers and strings (JSON, TOML).
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from servetop.core.config_values.cell_settings import settings_label
from servetop.core.config_values.failure_limit import DEFAULT_MAX_FAILURES
from servetop.core.config_values.predicted_cell import PredictedCell
from servetop.core.config_values.published_study import PublishedStudy
from servetop.core.config_values.search_config import SearchConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.errors import UsageError
from servetop.core.text.encodable import not_encodable

STANDARD_PERCENTILES = (50.0, 90.0, 95.0, 99.0)
"""Percentiles in every summary; `metric_percentiles` adds others."""
RANDOM = ("random", "prefix_repetition")
"""Names of `dataset` that do not read a file."""
CONVERSATIONS = ("mtbench", "conversations")
"""Datasets of conversations with several turns."""
AS_IS, COLD, WARM = PREFIX_CACHE_STATES = ("as-is", "cold", "warm")
_Config = TypeVar("_Config")
_SECONDS, _TOKENS, _PER_SECOND, _ARGUMENTS = ({"unit": unit} for unit in ("s", "tokens", "req/s", "arguments"))
"""Metadata of fields: the unit of their values, or that these are arguments of a command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionConfig:
    """How to reach a server at a URL; `engines.control.connection` decides what applies. Contains no secrets."""

    transport: str = ""
    """`raw` or `httpx`; empty for raw, or httpx with a proxy or a client certificate."""
    proxy: str | None = field(default=None, repr=False)
    """`http://host:port`; None for the proxy of the environment."""
    ca_cert: str | None = None
    """PEM file of certificate authorities to trust in addition to the system's."""
    client_cert: str | None = None
    """PEM file of the client certificate; its key is in the same file or in `client_key`."""
    client_key: str | None = None
    insecure: bool = False
    """Accept any certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """The engine to start, or with `url` to attach to."""

    name: str = "sim"
    """An entry point of group `servetop.engines`; `auto` detects the engine at `url`."""
    model: str = "llama-2-7b"
    """Alias, Hugging Face name or local path, as given; empty for the first model of the server at `url`."""
    url: str | None = None
    more_urls: tuple[str, ...] = ()
    """Replicas of the server at `url`: the same engine and model."""
    front_door: str | None = None
    """URL of the load balancer that receives the requests; None sends them to the replicas themselves."""
    metrics_url: str | None = None
    """Metrics page, or a Prometheus server that scrapes it; None for the engine's usual page."""
    metrics_api_key_env: str | None = None
    metrics_header_env: Mapping[str, str] = field(default_factory=dict)
    """Like `api_key_env` and `WorkloadConfig.header_env`, for the server at `metrics_url` only."""
    port: int | None = None
    """Port of an engine that servetop starts; None for a free one."""
    max_num_seqs: int | None = None
    """The engine's batch size limit; None for its default."""
    extra_args: tuple[str, ...] = field(default=(), metadata=_ARGUMENTS)
    """Arguments added to the engine's own command line."""
    command: tuple[str, ...] = field(default=(), metadata=_ARGUMENTS)
    """Replaces the engine's executable, as in `/opt/venv/bin/python -m vllm.entrypoints.openai.api_server`."""
    start_timeout: float = field(default=1800.0, metadata=_SECONDS)
    """Time limit in seconds for the engine to load."""
    attach_timeout: float = field(default=30.0, metadata=_SECONDS)
    """Time limit in seconds for the first responses of a server at `url`."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key; the key itself is never stored."""
    connection: ConnectionConfig = ConnectionConfig()
    launcher: str = ""
    """`docker` or `podman` to run the engine in a container; empty to run it as a program."""
    image: str = ""
    """Container image; empty for the engine's official one."""

    @property
    def known_as(self) -> str:
        """The name, or the address of a server that is still to be recognised, as in `gpu7:8000`."""
        address = (self.url or "").rpartition("@")[2].rpartition("://")[2].partition("/")[0]
        return address if self.name == "auto" and address else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadConfig:
    """What each request contains, and how requests are spaced."""

    input_len: int = field(default=128, metadata=_TOKENS)
    """Prompt tokens."""
    output_len: int = field(default=128, metadata=_TOKENS)
    """Maximum number of output tokens, and with `ignore_eos` the exact number."""
    lengths: str = ""
    """Distribution of prompt and output lengths, as in `lognormal:input_mean=512`; empty: the dataset's, else fixed."""
    range_ratio: float = 0.0
    """Draw lengths uniformly within ± this fraction of `input_len` and `output_len`; 0 to below 1, as in vLLM."""
    dataset: str = "random"
    """Source of the prompts, or the trace to replay."""
    dataset_path: str = ""
    num_turns: str = ""
    """Distribution of turns per conversation, as in `3` or `uniform:min=2,max=6`; for a dataset, a maximum."""
    dataset_column: str = ""
    """Column of a table with the prompts; empty for `prompt`."""
    prefix_len: int = field(default=0, metadata=_TOKENS)
    """Length in tokens of the shared prefix of the prompts."""
    num_prefixes: int = 1
    """Number of prefixes that requests draw from."""
    cache_hit_rate: float | None = None
    """Fraction of the prompt tokens that a warm prefix cache holds, 0 to below 1; None: what the prefixes give."""
    exact_lengths: bool = False
    """Cut texts to their exact length with the engine's `/tokenize`, or with `tokenizer`."""
    tokenizer: str = ""
    """Local file, folder or tiktoken encoding that counts tokens; empty: the engine's counts, else estimates."""
    skip_bad_rows: bool = False
    """Skip malformed rows of a dataset and count them, instead of failing."""
    clip_lengths: bool = False
    """Truncate requests to the model's context length, and count them."""
    arrivals: str = ""
    """Arrival process, as in `burst` or `sinusoid:period=60`; empty: a trace's own times, else gamma."""
    burstiness: float = 1.0
    """Gamma shape of the inter-arrival times: 1 is Poisson, below 1 burstier, inf constant."""
    time_scale: float = 1.0
    """Factor that stretches the timestamps of a trace."""
    trace_rate: float | None = field(default=None, metadata=_PER_SECOND)
    """Mean rate of a trace as recorded, in requests per second; measured when the run is set up."""
    jitter: float | None = field(default=None, metadata=_SECONDS)
    """Maximum random delay of a trace's arrivals, in seconds; None for the resolution of its timestamps."""
    think_time: str = ""
    """Pause between a response and the same user's next request, as in `2` or `exponential:mean=2`."""
    ignore_eos: bool = True
    endpoint: str = "completions"
    """`completions`, `chat`, `responses`, or `generate` (the engine's own API); empty while the engine is unknown."""
    temperature: float | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Additional headers of every request."""
    header_env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that hold the values of further headers; the values are never stored."""
    stream: bool = True
    """Request a stream; without it, a response is one chunk, and its first token arrives with the last."""
    n: int = 1
    """Completions for each prompt."""
    cancel_fraction: float = 0.0
    """Fraction of the requests, 0 to 1, that the client cancels mid-stream."""
    model_mix: Mapping[str, float] = field(default_factory=dict)
    """Weights by served model: each request is sent to one of these models; empty: all to the one model."""
    timeout: float = field(default=600.0, metadata=_SECONDS)
    """Time limit of a request in seconds."""
    store_texts: bool = False

    @property
    def in_messages(self) -> bool:
        """Whether earlier turns are sent as messages rather than as text."""
        return self.endpoint in ("chat", "responses")

    @property
    def conversational(self) -> bool:
        """Whether requests are turns of conversations."""
        return bool(self.num_turns) or self.dataset in CONVERSATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class StageConfig:
    """One load, constant or ramped; ends after `duration` seconds or `num_prompts` requests, whichever comes first."""

    request_rate: float = math.inf
    """Requests per second; inf sends whenever the concurrency allows."""
    ramp_from: float | None = None
    """Rate at the beginning of a stage that ends with `request_rate`; None for a constant rate."""
    ramp_strategy: str = "linear"
    """How the rate changes from `ramp_from` to `request_rate`: `linear` or `exponential`."""
    max_concurrency: int | None = None
    max_num_seqs: int | None = None  # batch size limit of the engine; None keeps the current one
    duration: float | None = None
    num_prompts: int | None = None
    repeat: int = 0
    warmup: bool = False
    """Whether it is a warm-up stage, whose requests are excluded from all totals."""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What a cell of a sweep replaces: values by field of WorkloadConfig, `seed`, `model`, and `engine.args.FLAG`."""

    @property
    def label(self) -> str:
        """Short name for tables and the screen, such as `8 req/s · batch 64`."""
        rate = "all at once" if math.isinf(self.request_rate) else f"{self.request_rate:g} req/s"
        parts = ["warm-up"] if self.warmup else []
        parts.append(rate if self.ramp_from is None else f"{self.ramp_from:g} to {rate}")
        if self.max_num_seqs is not None:
            parts.append(f"batch {self.max_num_seqs}")
        if self.max_concurrency is not None:
            parts.append(f"conc. {self.max_concurrency}")
        return " · ".join(filter(None, (*parts, settings_label(self.settings))))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A whole run."""

    engine: EngineConfig = EngineConfig()
    workload: WorkloadConfig = WorkloadConfig()
    stages: tuple[StageConfig, ...] = ()
    seed: int = 0
    goodput: Mapping[str, float] = field(default_factory=dict, metadata=_SECONDS)
    """Service-level objectives by metric (`ttft`, `ttfot`, `tpot`, `e2el`), in seconds."""
    thresholds: tuple[str, ...] = ()
    """Conditions on the summary, such as `p99_ttft_ms<=500`; the exit code is 99 if one is not met."""
    cell_thresholds: tuple[str, ...] = ()  # conditions that each cell of a sweep must meet; as `thresholds`
    prices: tuple[str, ...] = ()  # of the server per hour, and perhaps one to compare it with: `config_values.price`
    max_failures: str = DEFAULT_MAX_FAILURES
    """Number or share of requests that may fail, such as `10`, `2%` or `0.02`; beyond it the exit code is 1."""
    until: tuple[str, ...] = ()  # conditions on a cell that end its row of a sweep: later cells are skipped
    restart: str | None = None  # "repeats": each repeat of a sweep has a start of its engine of its own
    drain_at_stages: bool = False  # whether all requests of a stage finish before the next one starts (sweeps)
    drain_timeout: float = field(default=120.0, metadata=_SECONDS)
    """Seconds for which requests in flight are waited for at the end; then they are cancelled."""
    cooldown: float = field(default=0.0, metadata=_SECONDS)
    """Seconds at the end of each stage whose requests are excluded from all totals."""
    workers: int = 1  # sender processes; 0 is `auto`: starts with one and adds more under load
    metric_percentiles: tuple[float, ...] = ()  # of the summary, in addition to 50, 90, 95 and 99
    prefix_cache: str = AS_IS
    """State of the engine's prefix cache when a load or a cell begins: `as-is`, `cold` or `warm`."""
    label: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    predicted: tuple[PredictedCell, ...] = ()  # of a sweep whose file describes the simulated machine
    published: PublishedStudy | None = None  # what a study measured in the cells of a sweep
    search: SearchConfig | None = None  # a search for the largest load within objectives
    watch: WatchConfig | None = None  # a watch of a server under the load of other clients: nothing is sent

    def __post_init__(self) -> None:
        """UsageError for a text that cannot be sent or recorded."""
        if (text := not_encodable(to_data(self))) is not None:
            raise UsageError(f"{text!r} is not valid UTF-8: write it in UTF-8")


def to_data(config: object) -> Any:
    """Convert to plain data, without fields that are None; infinity becomes the string `inf`."""
    if dataclasses.is_dataclass(config):
        pairs = ((each.name, getattr(config, each.name)) for each in dataclasses.fields(config))
        return {name: to_data(value) for name, value in pairs if value is not None}
    if isinstance(config, Mapping):
        return {str(key): to_data(value) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return [to_data(value) for value in config]
    return "inf" if isinstance(config, float) and math.isinf(config) else config


def from_data(kind: type[_Config], data: Mapping[str, Any], *, strict: bool = True, where: str = "config") -> _Config:
    """Build a configuration; UsageError for a wrong type, or an unknown key with the nearest valid one.

    With `strict=False` unknown keys are ignored (a header written by a newer version).
    """
    hints = typing.get_type_hints(kind)
    if not isinstance(data, Mapping):
        raise UsageError(f"{where}: expected a table of {', '.join(hints)}")
    if strict and (unknown := [key for key in data if key not in hints]):
        near = difflib.get_close_matches(unknown[0], hints, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(hints)}"
        raise UsageError(f"{where}: unknown key {unknown[0]!r}: {hint}")
    return kind(**{key: _value(hints[key], data[key], strict, f"{where}.{key}") for key in data if key in hints})


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
    if hint is float and (value == "inf" or (isinstance(value, int | float) and not isinstance(value, bool))):
        return float(value)
    if isinstance(hint, type) and issubclass(hint, Enum) and value in {each.value for each in hint}:
        return hint(value)
    is_bool_for_int = hint is int and isinstance(value, bool)
    if hint is Any or (isinstance(hint, type) and isinstance(value, hint) and not is_bool_for_int):
        return value
    raise UsageError(f"{where}: {value!r} is not {getattr(hint, '__name__', hint)}")
