"""Where an engine's metrics pages come from: its own server, another port beside it, or a Prometheus server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from servetop.core.config import ConnectionConfig, EngineConfig
from servetop.engines.control.control_client import HttpResult, HttpResults, ServerClient, normalise_url
from servetop.engines.control.patient_client import PatientClient
from servetop.engines.metrics.metrics_reader import MetricsReader
from servetop.engines.metrics.prometheus_server import (
    SERVER_TIME,
    MetricsAddress,
    NamesSeries,
    PrometheusSource,
    is_prometheus,
)

if TYPE_CHECKING:
    from servetop.engines.engine import Engine

SCRAPE_TIMEOUT = 1.0
"""Seconds; a later page would be too old to be shown as now."""


class MetricsSource(Protocol):
    """Fetches pages; a troubled answer says why one is not there."""

    @property
    def url(self) -> str:
        """Of what is asked, for messages."""
        ...

    def where(self, path: str) -> str:
        """The place of one page, for messages."""
        ...

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """All of them, at once."""
        ...

    async def close(self) -> None:
        """Close what it opened; the engine's own connections are not its own."""
        ...


class ServerSource:
    """Pages of a server: the engine's own (`owned` false), or one that only tells metrics."""

    def __init__(self, client: ServerClient, *, owned: bool = False, timeout: float = SCRAPE_TIMEOUT) -> None:
        self._client = client
        self._owned = owned
        self._patient = PatientClient(client, timeout=timeout)

    @property
    def url(self) -> str:
        """The server's."""
        return self._client.url

    def where(self, path: str) -> str:
        """Its URL."""
        return f"{self.url}{path}"

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """Within the engine's time limit; longer where the server was late before."""
        return await self._patient.get_all(paths)

    async def close(self) -> None:
        """The client, if it is for metrics alone."""
        if self._owned:
            await self._client.close()


class ConfiguredSource:
    """Pages at the address that a person gave: a Prometheus server's, or an engine's, which is seen when it answers.

    A Prometheus server has a metrics page of its own besides, so it is asked for its API first.
    """

    def __init__(self, client: ServerClient, reader: MetricsReader, *, match: str | None, timeout: float) -> None:
        self._client = client
        self._reader = reader
        self._match = match
        self._timeout = timeout
        self._patient = PatientClient(client, timeout=timeout)
        self._plain = ServerSource(client, owned=True, timeout=timeout)
        self._found: MetricsSource | None = None

    @property
    def url(self) -> str:
        """As given."""
        return self._client.url

    def where(self, path: str) -> str:
        """As long as it did not answer: that of a page."""
        return (self._found or self._plain).where(path)

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """The first one that is answered also finds out who answers."""
        if self._found is None:
            result = (await self._patient.get_all((SERVER_TIME,)))[SERVER_TIME]
            if result.error:
                return dict.fromkeys(paths, result)
            if self._match is not None and not is_prometheus(result):
                words = "it does not answer as a Prometheus server: leave out what follows the ?"
                return dict.fromkeys(paths, HttpResult(error=words))
            self._found = self._pages(result)
        return await self._found.fetch(paths)

    def _pages(self, result: HttpResult) -> MetricsSource:
        if not is_prometheus(result):
            return self._plain
        names = self._reader.series() if isinstance(self._reader, NamesSeries) else frozenset[str]()
        return PrometheusSource(self._client, names, match=self._match, timeout=self._timeout)

    async def close(self) -> None:
        """The client is its own."""
        await self._client.close()


@dataclass(frozen=True, slots=True)
class MetricsScraper:
    """One server's metrics: how to get them, and what they mean."""

    reader: MetricsReader
    pages: MetricsSource

    async def fetch(self) -> HttpResults:
        """The reader's pages, once."""
        return await self.pages.fetch(self.reader.paths)


def metrics_feed(
    engine: Engine,
    client: ServerClient,
    *,
    config: EngineConfig,
    port: int | None = None,
    connection: ConnectionConfig | None = None,
) -> MetricsScraper | None:
    """Of the server that `client` asks; None for an engine without metrics.

    Where they are: at `config.metrics_url`, else at `port` beside the server, else where this engine usually has them.
    """
    reader = engine.metrics()
    if reader is None:
        return None
    if config.metrics_url is not None:
        told = MetricsAddress.parse(config.metrics_url)
        url = normalise_url(told.url)
        named = ServerClient(url, connection=connection)
        return MetricsScraper(reader, ConfiguredSource(named, reader, match=told.match, timeout=engine.scrape_timeout))
    url = engine.metrics_url(client.url) if port is None else with_port(client.url, port)
    owned = url != client.url
    server = ServerClient(url, connection=connection) if owned else client
    return MetricsScraper(reader, ServerSource(server, owned=owned, timeout=engine.scrape_timeout))


def with_port(url: str, port: int) -> str:
    """The same host at another port, without a path."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{port}"
