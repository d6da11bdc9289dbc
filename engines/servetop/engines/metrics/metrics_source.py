"""Sources of an engine's metrics: the server itself, another port, or a Prometheus server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from servetop.analysis.exported.metric_spec import wanted_labels
from servetop.core.clock import Clock
from servetop.core.config import ConnectionConfig, EngineConfig
from servetop.core.interfaces.series_scrape import PROCESS_START
from servetop.engines.control.control_client import HttpResult, HttpResults, ServerClient
from servetop.engines.control.credentials import metrics_client
from servetop.engines.control.http_body import excerpt
from servetop.engines.control.patient_client import PatientClient
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.metrics.exported_tables import exported_by
from servetop.engines.metrics.lora_requests import RUNNING
from servetop.engines.metrics.lora_requests import SOURCE as LORA
from servetop.engines.metrics.metrics_reader import SCRAPE_TIMEOUT, MetricsReader
from servetop.engines.metrics.model_rows import has_own_rows_only, other_models, own_rows
from servetop.engines.metrics.prometheus_server import (
    SERVER_TIME,
    MetricsAddress,
    NamesSeries,
    PrometheusSource,
    is_prometheus,
)

if TYPE_CHECKING:
    from servetop.engines.engine import Engine

METRICS_KEY_HELP = "it wants credentials: give --metrics-api-key-env or --metrics-header-env"
_MODELS_SHOWN = 4
_RETRY_INTERVAL = 0.05
"""Seconds between attempts to reach a server that refuses connections."""


class MetricsSource(Protocol):
    """Fetches metrics pages; the result of a missing page has an `error`."""

    @property
    def url(self) -> str:
        """The URL of the source, for messages."""
        ...

    def where(self, path: str) -> str:
        """Return the URL of one page, for messages."""
        ...

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """Fetch all pages concurrently."""
        ...

    async def close(self) -> None:
        """Close the source's own connections; those shared with the engine stay open."""
        ...


class ServerSource:
    """Metrics pages of a server: the engine itself, or (`owned`) one with metrics only."""

    def __init__(self, client: ServerClient, *, owned: bool = False, timeout: float = SCRAPE_TIMEOUT) -> None:
        self._client = client
        self._owned = owned
        self._patient = PatientClient(client, timeout=timeout)

    @property
    def url(self) -> str:
        """URL of the server."""
        return self._client.url

    def where(self, path: str) -> str:
        """Return the URL of the page."""
        return self._client.server.where(path)

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """Fetch within the engine's scrape timeout, or a longer one after a late response."""
        return await self._patient.get_all(paths)

    async def close(self) -> None:
        """Close the client if it is used for metrics only."""
        if self._owned:
            await self._client.close()


class ConfiguredSource:
    """Metrics at the configured URL; the first response shows whether it is a Prometheus server or an engine.

    A Prometheus server also has a metrics page of its own, so its API is tried first.
    """

    def __init__(
        self,
        client: ServerClient,
        reader: MetricsReader,
        *,
        further: frozenset[str],
        match: str | None,
        timeout: float,
    ) -> None:
        self._client = client
        self._reader = reader
        self._further = further
        self._match = match
        self._timeout = timeout
        self._patient = PatientClient(client, timeout=timeout)
        self._plain = ServerSource(client, owned=True, timeout=timeout)
        self._found: MetricsSource | None = None

    @property
    def url(self) -> str:
        """The configured URL."""
        return self._client.url

    def where(self, path: str) -> str:
        """Return the URL of a page, as long as the kind of server is unknown."""
        return (self._found or self._plain).where(path)

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """Fetch the pages; the first response determines the kind of server."""
        if self._found is None:
            result = (await self._patient.get_all((SERVER_TIME,)))[SERVER_TIME]
            if result.error:
                return dict.fromkeys(paths, result)
            if result.status in (401, 403):
                where = self._client.server.where(SERVER_TIME)
                return dict.fromkeys(paths, HttpResult(error=f"HTTP {result.status} from {where}: {METRICS_KEY_HELP}"))
            if self._match is not None and not is_prometheus(result):
                error = "it does not respond as a Prometheus server: leave out the part after the ?"
                return dict.fromkeys(paths, HttpResult(error=error))
            self._found = self._pages(result)
        return await self._found.fetch(paths)

    def _pages(self, result: HttpResult) -> MetricsSource:
        if not is_prometheus(result):
            return self._plain
        names = self._reader.series() if isinstance(self._reader, NamesSeries) else frozenset[str]()
        return PrometheusSource(self._client, names, further=self._further, match=self._match, timeout=self._timeout)

    async def close(self) -> None:
        """Close the client, which is used for metrics only."""
        await self._client.close()


@dataclass(slots=True)
class MetricsScraper:
    """The metrics of one server: source and reader."""

    reader: MetricsReader
    pages: MetricsSource
    models: frozenset[str] = frozenset()
    """Names of the models whose rows count; empty: all rows, as on the pages of a single model."""

    async def fetch(self) -> HttpResults:
        """Fetch the reader's pages once, with the rows that count; an error for rows of other models only."""
        results = await self.pages.fetch(self.reader.paths)
        return {path: self._counting(result) for path, result in results.items()}

    def _counting(self, result: HttpResult) -> HttpResult:
        if not result.ok or has_own_rows_only(result.body, self.models):
            return result
        if others := other_models(result.body, self.models):
            names = [" ".join(each.split()) for each in others[:_MODELS_SHOWN]]
            shown = ", ".join(names) + ("" if len(others) <= _MODELS_SHOWN else ", …")
            return HttpResult(error=f"its rows are those of the models {shown}: give --model as the engine names it")
        return replace(result, body=own_rows(result.body, self.models))

    async def wait_until_reachable(self, clock: Clock, *, timeout: float) -> None:
        """Return when the server of the pages accepts connections, or after `timeout` seconds."""
        deadline = clock.now() + timeout
        while clock.now() < deadline and all(result.refused for result in (await self.fetch()).values()):
            await clock.sleep_until(clock.now() + _RETRY_INTERVAL)


def metrics_scraper(
    engine: Engine,
    client: ServerClient,
    *,
    config: EngineConfig,
    port: int | None = None,
    models: frozenset[str] = frozenset(),
    connection: ConnectionConfig | None = None,
) -> MetricsScraper | None:
    """Create the scraper of the server of `client`; None for an engine without metrics.

    The URL is `config.metrics_url`, else `port` on the same host, else the engine's default. Rows of other models than
    `models` do not count.
    """
    reader = engine.metrics()
    if reader is None:
        return None
    if config.metrics_url is not None:
        address = MetricsAddress.parse(config.metrics_url)
        page = ServerUrl.page(address.url)
        source_client = metrics_client(page, client, config=config, environ=os.environ, connection=connection)
        wanted = wanted_labels(exported_by(engine))
        further = frozenset((PROCESS_START, *wanted, *((LORA,) if RUNNING in wanted else ())))
        source = ConfiguredSource(
            source_client, reader, further=further, match=address.match, timeout=engine.scrape_timeout
        )
        return MetricsScraper(reader, source, models)
    url = engine.metrics_url(client.url) if port is None else with_port(client.url, port)
    owned = url != client.url
    server = ServerClient(url, connection=connection) if owned else client
    return MetricsScraper(reader, ServerSource(server, owned=owned, timeout=engine.scrape_timeout), models)


def metrics_error(scraper: MetricsScraper, result: HttpResult, engine: Engine, *, url: str) -> str:
    """Return why a page of the engine at `url` gave no sample, and what to do, in one line."""
    where = scraper.pages.where(scraper.reader.paths[0])
    if result.error:
        return f"no metrics from {where} ({result.error})"
    if result.status in (401, 403):
        own = scraper.pages.url == url
        advice = "it wants a key: give --api-key-env or --header-env" if own else METRICS_KEY_HELP
        return f"no metrics from {where} (HTTP {result.status}): {advice}"
    advice = f": {engine.metrics_off_help}" if engine.metrics_off_help else ""
    if not result.ok:
        return f"no metrics from {where} (HTTP {result.status}){advice}"
    return f"{where} has no metrics of {engine.title} (it begins {excerpt(result.body)!r}){advice}"


def with_port(url: str, port: int) -> str:
    """Return the URL with another port and without a path."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{port}"
