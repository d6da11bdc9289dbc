"""The plug-in interface: what servetop needs to launch an engine, detect it, read its metrics and stop it."""

from __future__ import annotations

import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servetop.analysis.exported.metric_spec import MetricSpec
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.core.tick import TICK_SECONDS
from servetop.engines.control.control_client import HttpResults
from servetop.engines.control.model_list import model_names
from servetop.engines.dialects.dialect_registry import OPENAI_ENDPOINTS
from servetop.engines.metrics.metrics_reader import SCRAPE_TIMEOUT, MetricsReader
from servetop.engines.process.startup_failures import COMMON_FAILURES, KnownFailure, known_failure, last_error
from servetop.engines.server_facts import ServerFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """The command that starts an engine's server, and the address it then listens on."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables added to the environment."""
    cwd: str | None = None
    """Working directory; None: the current one."""
    host: str = "127.0.0.1"
    """Host under which servetop connects to the server."""
    port: int
    metrics_port: int | None = None
    """Port of the metrics, if it is not `port`."""
    ready_line: str = ""
    """The log line after which the health check counts; empty: it always counts."""
    cleanup: tuple[str, ...] = ()
    """A command to run after the server has ended, such as the removal of a container."""


@dataclass(frozen=True, slots=True)
class BatchSizeChange:
    """The HTTP request that changes the batch size of a running engine."""

    path: str
    data: Mapping[str, Any]
    """JSON body of the POST."""
    refused_by: re.Pattern[bytes] | None = None
    """Matches the body of an HTTP 200 response that refuses the change; None: HTTP 200 always accepts it."""


@dataclass(frozen=True, slots=True)
class CacheReset:
    """The HTTP request (POST) that empties the prefix cache of a running engine."""

    path: str
    refused_by: re.Pattern[bytes] | None = None
    """Matches the body of an HTTP 200 response that refuses the reset; None: HTTP 200 always means success."""
    also: Sequence[str] = ()
    """Paths of further caches to reset with it; their responses do not matter."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables with which the server must have been started to have these paths."""


class Engine(ABC):
    """One kind of engine; an entry point of group `servetop.engines` names a subclass without arguments.

    A subclass must set `name` and `title` and implement `match_score`. The defaults describe an OpenAI-compatible
    server with `/health` that servetop attaches to but does not start.
    """

    name: str
    """Value of `--engine`."""
    title: str
    """Display name."""
    ready_path: str = "/health"
    """Path of the health check (readiness): it returns 200 once the server accepts requests."""
    probe_paths: Sequence[str] = ("/version", "/v1/models")
    """Paths to GET before `match_score` and `facts` are called with the results."""
    endpoints: Mapping[str, str] = OPENAI_ENDPOINTS
    """Dialect (`module:Class`) by the name of `--endpoint`; the first is the default."""
    metric_map: MetricsReader | None = None
    """A reader without state between scrapes; for one with state override `metrics`."""
    exported: Sequence[MetricSpec] = ()
    """A plug-in's metrics for the engine page, in their order there; recorded, so that viewers need no plug-in."""
    port_flag: str = "--port"
    """The engine's own option for its port."""
    batch_size_flag: str = "--max-num-seqs"
    """The engine's own option for its batch-size limit."""
    batch_size_help: str = "only a restart changes it"
    """What the batch-size limit means in this engine and how to change it, in one sentence."""
    package: str = ""
    """The distribution that has this engine, whose version is that of the engine; empty: none."""
    programs: Sequence[str] = ()
    """Commands or paths of which one is enough to start it, whatever is installed; its version is unknown."""
    install_help: str = "start it yourself and attach with --url"
    """How to install this engine, in one sentence."""
    metrics_off_help: str = ""
    """How to turn its metrics on if the metrics page is missing; empty: they are always on."""
    stop_signal: signal.Signals = signal.SIGINT
    """Signal that requests a graceful shutdown."""
    stop_grace_period: float = 10.0
    """Seconds for the graceful shutdown, before the process is killed."""
    continuous_usage: bool = False
    """Supports `stream_options.continuous_usage_stats`: token counts in every chunk."""
    oldest_version: str = ""
    """Oldest supported version; empty: no limit, or the server reports no version."""
    takes_token_ids: bool = True
    """The endpoint `completions` accepts token ids; otherwise prompts are text of estimated length."""
    tokenize_field: str = ""
    """Field with the text in a request to its tokenizer; empty: unknown, the server is asked whether it has one."""
    metrics_caveat: str = ""
    """A limitation of its metrics to show to the user, in one sentence; empty: none."""
    scrape_timeout: float = SCRAPE_TIMEOUT
    """Seconds after which a scrape is abandoned."""
    scrape_period: float = TICK_SECONDS
    """Seconds between scrapes; larger for engines whose metrics are expensive or cached."""
    idle_metrics_vanish: bool = False
    """Values disappear from the metrics page while the engine is idle, so a missing value is not reported."""
    changes_batch_size_live: bool = False
    """`batch_size_change` works on a running server."""
    cache_reset: CacheReset | None = None
    """How to empty the prefix cache while the engine runs; None: it has no endpoint for that."""
    log_filter: re.Pattern[bytes] | None = re.compile(rb'"(GET|POST) \S+ HTTP/1\.[01]" 2\d\d')
    """Log lines to drop, such as the access log of successful requests."""
    boot_patterns: Mapping[str, re.Pattern[str]] = {}
    """Patterns of the start-up log by field of `ServerFacts`; the first group is the value."""
    failures: Sequence[KnownFailure] = ()
    """This engine's known start-up failures; they take precedence over those common to all engines."""

    @abstractmethod
    def match_score(self, results: HttpResults) -> int:
        """Rate how certainly these results of `probe_paths` come from this engine: 0 for no match, the highest wins."""

    def launch(self, config: EngineConfig, *, port: int) -> LaunchCommand:
        """Return the command line; EngineError if the engine is not installed or servetop cannot start it."""
        del config, port
        raise EngineError(
            f"servetop cannot start {self.title}: start it yourself and attach with --url http://host:port"
        )

    def resolve_model(self, model: str) -> str:
        """Return the engine's name for the model that the user gave; UsageError for an unknown alias."""
        return model

    def facts(self, results: HttpResults) -> ServerFacts:
        """Read version, models and limits from the results of `probe_paths`."""
        return ServerFacts(version=_version(results)).merged_with(_models(results))

    def metrics(self) -> MetricsReader | None:
        """Return a metrics reader for one server; None: this engine has no metrics."""
        return self.metric_map

    def metrics_url(self, url: str) -> str:
        """Return the default metrics URL of the server at `url`."""
        return url

    def page_age(self, *, managed: bool) -> float:
        """Return by how many seconds the metrics page may be older than its scrape; `managed`: servetop started it."""
        del managed
        return 0.0

    def installed(self) -> str | None:
        """Return the version that `launch` would start, `yes` if it is unknown, None if the engine is missing."""
        from shutil import which  # slow, and needed only to list engines

        version = package_version(self.package) if self.package else None
        return version or ("yes" if any(map(which, self.programs)) else None)

    def boot_facts(self, lines: Sequence[str]) -> ServerFacts:
        """Read facts such as the size of the KV cache from the start-up log; the last matching line counts."""
        matches = ((name, pattern.search(line)) for line in lines for name, pattern in self.boot_patterns.items())
        texts = {name: match[1] for name, match in matches if match}
        values: dict[str, Any] = {name: int(text.replace(",", "")) for name, text in texts.items() if name != "version"}
        return ServerFacts(version=texts.get("version"), **values)

    def failure_reason(self, lines: Sequence[str]) -> str | None:
        """Return the cause of the server's exit in one line, from its log; None if the log has none."""
        return known_failure(lines, [*self.failures, *COMMON_FAILURES]) or last_error(lines)

    def batch_size_change(self, max_num_seqs: int) -> BatchSizeChange | None:
        """Return the request that changes the batch size now; None: only a restart can change it."""
        del max_num_seqs
        return None


def package_version(name: str) -> str | None:
    """Return the version of an installed distribution; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # slow, and needed only to list engines

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _version(results: HttpResults) -> str | None:
    data = results["/version"].json() if "/version" in results else None
    version = data.get("version") if isinstance(data, dict) else None
    return version if isinstance(version, str) else None


def _models(results: HttpResults) -> ServerFacts:
    data = results["/v1/models"].json() if "/v1/models" in results else None
    rows = data.get("data") if isinstance(data, dict) else data  # some gateways send the array alone
    cards = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    names = model_names(data)
    lengths = [card["max_model_len"] for card in cards if type(card.get("max_model_len")) is int]
    return ServerFacts(models=names, max_model_len=lengths[0] if lengths else None)
