"""What defines a run: frozen, built once by the command line, written as the recording's header.

`--config RUN.servetop` builds it again from there. `to_data` and `from_data` go to and from plain dictionaries, lists,
numbers and strings (JSON, TOML).
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
from servetop.core.failure_limit import DEFAULT_MAX_FAILURES

RANDOM = ("random", "prefix_repetition")
"""Names of `dataset` that read no file."""
CONVERSATIONS = ("mtbench", "conversations")
"""Datasets of conversations of several turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionConfig:
    """How to reach a server at a URL; `core.connection` decides what applies. It holds no secret."""

    transport: str = ""
    """`raw` or `httpx`; empty: raw, unless a proxy or a client certificate applies."""
    proxy: str | None = field(default=None, repr=False)
    """`http://host:port`; None: what the environment says."""
    ca_cert: str | None = None
    """PEM file of authorities to trust besides the system's."""
    client_cert: str | None = None
    """PEM file that says who we are, its key in it or in `client_key`."""
    client_key: str | None = None
    insecure: bool = False
    """Believe any certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Which engine to start, or, with `url`, to attach to."""

    name: str = "sim"
    """An entry point of group `servetop.engines`; `auto` recognises whatever answers at `url`."""
    model: str = "llama-2-7b"
    """As the user wrote it: an alias, a hub name or a local path; empty when attached: the server's first model."""
    url: str | None = None
    more_urls: tuple[str, ...] = ()
    """Replicas of the server at `url`: the same engine and model."""
    front_door: str | None = None
    """Where requests go, if not to the replicas themselves; whose metrics are read all the same."""
    metrics_url: str | None = None
    """Where its metrics are, or a Prometheus server that has them; None: where the engine usually has them."""
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
    attach_timeout: float = 30.0
    """Seconds that a server at `url` gets for its first answers."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key; the key itself is never stored."""
    connection: ConnectionConfig = ConnectionConfig()
    launcher: str = ""
    """`docker` or `podman`: run the engine in a container; empty: as a program of this machine."""
    image: str = ""
    """Of that container; empty: the one that the engine's makers publish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadConfig:
    """What each request asks for, and how requests are spaced."""

    input_len: int = 128
    """Prompt tokens."""
    output_len: int = 128
    """Most output tokens (exactly so many with `ignore_eos`)."""
    lengths: str = ""
    """Law of prompt and output lengths, as in `lognormal:input_mean=512`; empty: the dataset's own, else fixed."""
    range_ratio: float = 0.0
    """Uniform lengths within ± this share of `input_len` and `output_len`, 0 to below 1 (vLLM's meaning)."""
    dataset: str = "random"
    """What prompts are made of, or the trace that is replayed."""
    dataset_path: str = ""
    num_turns: str = ""
    """Law of the turns of a conversation, as in `3` or `uniform:min=2,max=6`; at most so many of a dataset's."""
    dataset_column: str = ""
    """Of a table, the column with the prompts; empty: `prompt`."""
    prefix_len: int = 0
    """Tokens in front of every prompt that it shares with others."""
    num_prefixes: int = 1
    """Size of the pool that each request draws its prefix from."""
    exact_lengths: bool = False
    """Cut texts to tokens by the engine's own `/tokenize`, or by `tokenizer`."""
    tokenizer: str = ""
    """File, folder or tiktoken encoding whose tokens count, on this machine; empty: the engine's, else estimates."""
    skip_bad_rows: bool = False
    """Leave out malformed rows of a dataset, and count them, instead of refusing it."""
    clip_lengths: bool = False
    """Shorten what does not fit the model's longest context, and count it."""
    arrivals: str = ""
    """Law of arrival, as in `burst` or `sinusoid:period=60`; empty: a trace's own times, else gamma."""
    burstiness: float = 1.0
    """Gamma shape of the gaps between requests: 1 is Poisson, below 1 burstier, inf constant."""
    time_scale: float = 1.0
    """A replayed trace takes so many times as long as it took."""
    trace_rate: float | None = None
    """Mean requests per second of a trace as recorded; measured when the run is set up."""
    jitter: float | None = None
    """Seconds by which a trace's arrivals are spread at random; None: what the trace's own time grid needs."""
    think_time: str = ""
    """Pause between an answer and the same user's next request, as in `2` or `exponential:mean=2`."""
    ignore_eos: bool = True
    endpoint: str = "completions"
    """`completions`, `chat`, `responses`, or `generate` for the engine's own wire; empty: the usual one of an engine
    that is not known yet."""
    temperature: float | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request, besides the usual ones."""
    header_env: Mapping[str, str] = field(default_factory=dict)
    """Further headers, each with the environment variable that holds its value, which is never stored."""
    stream: bool = True
    """Ask for a stream; without, an answer is one chunk and its first token comes at its end."""
    n: int = 1
    """Answers wanted to each prompt."""
    cancel_fraction: float = 0.0
    """Share of the requests, 0 to 1, that the client breaks off somewhere in the middle of their answer."""
    model_mix: Mapping[str, float] = field(default_factory=dict)
    """Weights by served name: each request asks for one of these models; empty: all for the one model."""
    timeout: float = 600.0
    """Seconds after which an unfinished request is given up."""
    store_texts: bool = False

    @property
    def in_messages(self) -> bool:
        """What was said before goes as messages, not as text."""
        return self.endpoint in ("chat", "responses")

    @property
    def conversational(self) -> bool:
        """Requests are turns of conversations."""
        return bool(self.num_turns) or self.dataset in CONVERSATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class StageConfig:
    """One load, constant or ramped; ends after `duration` seconds or `num_prompts` requests, whichever comes first."""

    request_rate: float = math.inf
    """Requests per second; inf sends whenever the concurrency allows."""
    ramp_from: float | None = None
    """Rate at which the stage begins, to reach `request_rate` at its end; None: `request_rate` throughout."""
    ramp_strategy: str = "linear"
    """How the rate gets from `ramp_from` to `request_rate`: `linear` or `exponential` in time."""
    max_concurrency: int | None = None
    max_num_seqs: int | None = None
    """Batch size wanted of the engine; None keeps what is in force."""
    duration: float | None = None
    num_prompts: int | None = None
    repeat: int = 0
    warmup: bool = False
    """Its requests prepare the engine and count in no total."""

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
        return " · ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCell:
    """What the simulator said of one cell of a sweep before it was measured."""

    max_num_seqs: int | None
    request_rate: float
    max_concurrency: int | None = None
    output_throughput: float
    """Tokens/s."""
    preemptions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A whole run."""

    engine: EngineConfig = EngineConfig()
    workload: WorkloadConfig = WorkloadConfig()
    stages: tuple[StageConfig, ...] = ()
    seed: int = 0
    goodput: Mapping[str, float] = field(default_factory=dict)
    """Service-level objectives by metric (`ttft`, `ttfot`, `tpot`, `e2el`), in seconds."""
    thresholds: tuple[str, ...] = ()
    """Conditions on keys of the summary, such as `p99_ttft_ms<=500`; unmet: exit code 99."""
    max_failures: str = DEFAULT_MAX_FAILURES
    """Requests, such as `10`, or a share of them, such as `2%` or `0.02`, that may fail; more: exit code 1."""
    drain_at_stages: bool = False
    """Let all requests of a stage finish before the next one starts (sweeps)."""
    drain_timeout: float = 120.0
    """Seconds that requests in flight get to finish at the end."""
    cooldown: float = 0.0
    """Requests due in the last so many seconds of each stage's load count in no total."""
    workers: int = 1
    """Sender processes that share the load; 0 is `auto`: one, and others join in when the load is too much for it."""
    metric_percentiles: tuple[float, ...] = ()
    """Percentiles of the summary besides the 50th, 90th, 95th and 99th, 0 to 100."""
    label: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    predicted: tuple[PredictedCell, ...] = ()
    """Of a sweep whose file says what the simulator is to take the machine for."""


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
