"""What servetop must know of an engine to start it, recognise it, read it and stop it."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.core.tick import TICK_SECONDS
from servetop.engines.control.control_client import HttpResults
from servetop.engines.dialects.registry import OPENAI_ENDPOINTS
from servetop.engines.handle import EngineHandle, StopReport
from servetop.engines.metrics.metrics_reader import MetricsReader
from servetop.engines.metrics.metrics_source import SCRAPE_TIMEOUT
from servetop.engines.process.startup_failures import COMMON_FAILURES, KnownFailure, known_failure, last_error
from servetop.engines.server_facts import ServerFacts

__all__ = ["Adapter", "BatchSizeChange", "Engine", "EngineHandle", "LaunchCommand", "StopReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """How to start an engine's server process."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment."""
    cwd: str | None = None
    """Where it runs; None: where servetop does."""
    host: str = "127.0.0.1"
    """Where it can be reached then."""
    port: int
    metrics_port: int | None = None
    """Where its metrics are, if not on `port`."""
    cleanup: tuple[str, ...] = ()
    """A command for when it has ended, that leaves nothing of it."""


@dataclass(frozen=True, slots=True)
class BatchSizeChange:
    """The request that changes the batch size of a running engine."""

    path: str
    data: Mapping[str, Any]
    """JSON body of a POST."""
    refused_by: re.Pattern[bytes] | None = None
    """What an answer looks like that refuses the change with HTTP 200; None: none does."""


class Engine(Protocol):
    """One kind of engine; an entry point of group `servetop.engines` is a class of these, made without arguments."""

    name: str
    """As in `--engine NAME`."""
    title: str
    """As its makers write it."""
    ready_path: str
    """Answers 200 once requests can be served."""
    questions: Sequence[str]
    """Paths whose answers `recognises` and `facts` look at."""
    endpoints: Mapping[str, str]
    """Wires (`module:Class` of a `core.wire.Dialect`) by the name of `--endpoint`; the first is the usual one."""
    port_flag: str
    """The engine's own option for its port."""
    batch_size_flag: str
    """The engine's own option for its batch-size limit."""
    batch_size_words: str
    """What that limit means there, and how it changes, in a sentence."""
    install_words: str
    """How a person gets this engine, in a sentence."""
    metrics_off_words: str
    """How its metrics are turned on, for a server whose page is not there; empty where they are always on."""
    stop_signal: signal.Signals
    """What asks it to stop in order."""
    continuous_usage: bool
    """Understands `stream_options.continuous_usage_stats`: token counts in every chunk."""
    changes_batch_size_live: bool
    oldest_version: str
    """From which on its wire and metrics are understood; empty: all, or no version is told."""
    takes_token_ids: bool
    """At its endpoint `completions`; else prompts are sent as text, whose length is an estimate."""
    metrics_caveat: str
    """What a reader of its metrics must know, in a sentence; empty: nothing."""
    scrape_timeout: float
    """Seconds after which a metrics page is given up."""
    scrape_period: float
    """Seconds between two pages; longer for engines whose page is dear, or old anyway."""
    noise: re.Pattern[bytes] | None
    """Log lines that nobody wants to see, such as the access log of successful requests."""
    stop_patience: float
    """Seconds that it gets to stop in order."""

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """The command line; EngineError when the engine is not installed or cannot be started by servetop."""
        ...

    def resolve_model(self, model: str) -> str:
        """The name that the engine knows a model by, from what the user wrote; UsageError for an unknown alias."""
        ...

    def recognises(self, answers: HttpResults) -> int:
        """How surely these answers come from this engine: 0 not at all; the highest claim wins."""
        ...

    def facts(self, answers: HttpResults) -> ServerFacts:
        """What the answers say of the server."""
        ...

    def metrics(self) -> MetricsReader | None:
        """A reader for one server of this engine; None: it has no metrics."""
        ...

    def metrics_url(self, url: str) -> str:
        """Where the metrics of a server at this URL are, unless somebody says otherwise."""
        ...

    def installed(self) -> str | None:
        """The version that `launch` would start, or `yes` where that is not known; None: it is not there."""
        ...

    def boot_facts(self, lines: Sequence[str]) -> ServerFacts:
        """What the log of its start says."""
        ...

    def failure_reason(self, lines: Sequence[str]) -> str | None:
        """The recognised cause of its death in one line, from its log; None when the log does not tell."""
        ...

    def batch_size_change(self, max_num_seqs: int) -> BatchSizeChange | None:
        """How to change the batch size now; None: only a restart can."""
        ...


class Adapter:
    """What most engines have in common (an OpenAI-compatible server with `/health`): data to override, not code.

    A subclass sets `name` and `title`, and what differs.
    """

    name: str
    title: str
    ready_path: str = "/health"
    questions: Sequence[str] = ("/version", "/v1/models")
    endpoints: Mapping[str, str] = OPENAI_ENDPOINTS
    metric_map: MetricsReader | None = None
    """For a reader that keeps nothing between pages; others override `metrics`."""
    port_flag: str = "--port"
    batch_size_flag: str = "--max-num-seqs"
    batch_size_words: str = "only a restart changes it"
    install_words: str = "start it yourself and attach with --url"
    metrics_off_words: str = ""
    stop_signal: signal.Signals = signal.SIGINT
    continuous_usage: bool = False
    oldest_version: str = ""
    takes_token_ids: bool = True
    metrics_caveat: str = ""
    scrape_timeout: float = SCRAPE_TIMEOUT
    scrape_period: float = TICK_SECONDS
    changes_batch_size_live: bool = False
    noise: re.Pattern[bytes] | None = re.compile(rb'"(GET|POST) \S+ HTTP/1\.[01]" 2\d\d')
    stop_patience: float = 10.0
    failures: Sequence[KnownFailure] = ()
    """This engine's own known failures, looked at before those common to all."""

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """For engines that servetop only attaches to."""
        del config, port
        raise EngineError(
            f"servetop cannot start {self.title}: start it yourself and attach with --url http://host:port"
        )

    def resolve_model(self, model: str) -> str:
        """As the user wrote it."""
        return model

    def recognises(self, answers: HttpResults) -> int:
        """Never, unless an adapter knows better."""
        del answers
        return 0

    def facts(self, answers: HttpResults) -> ServerFacts:
        """From `/version` and `/v1/models`."""
        return ServerFacts(version=_version(answers)).or_else(_models(answers))

    def metrics(self) -> MetricsReader | None:
        """`metric_map`."""
        return self.metric_map

    def metrics_url(self, url: str) -> str:
        """Its own."""
        return url

    def installed(self) -> str | None:
        """Never: servetop does not start it."""
        return None

    def boot_facts(self, lines: Sequence[str]) -> ServerFacts:
        """Nothing."""
        del lines
        return ServerFacts()

    def failure_reason(self, lines: Sequence[str]) -> str | None:
        """A known failure, else the last error of a Python traceback."""
        return known_failure(lines, [*self.failures, *COMMON_FAILURES]) or last_error(lines)

    def batch_size_change(self, max_num_seqs: int) -> BatchSizeChange | None:
        """Only by a restart."""
        del max_num_seqs
        return None


def package_version(name: str) -> str | None:
    """Of an installed distribution; None when it is not there."""
    from importlib.metadata import PackageNotFoundError, version  # slow: to list engines only

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _version(answers: HttpResults) -> str | None:
    data = answers["/version"].json() if "/version" in answers else None
    told = data.get("version") if isinstance(data, dict) else None
    return told if isinstance(told, str) else None


def _models(answers: HttpResults) -> ServerFacts:
    data = answers["/v1/models"].json() if "/v1/models" in answers else None
    rows = data.get("data") if isinstance(data, dict) else None
    cards = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    names = tuple(str(card["id"]) for card in cards if isinstance(card.get("id"), str))
    lengths = [card["max_model_len"] for card in cards if type(card.get("max_model_len")) is int]
    return ServerFacts(models=names, max_model_len=lengths[0] if lengths else None)
