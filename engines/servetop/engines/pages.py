"""Where an engine's metrics pages come from: its own server, or another port beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from servetop.core.config import ConnectionConfig, EngineConfig
from servetop.engines.answers import Answers, ServerClient, normalise_url
from servetop.engines.metrics import PageReader

if TYPE_CHECKING:
    from servetop.engines.engine import Engine

SCRAPE_TIMEOUT = 1.0
"""Seconds; a later page would be too old to be shown as now."""


class MetricsPages(Protocol):
    """Fetches pages; a troubled answer says why one is not there."""

    @property
    def url(self) -> str:
        """Of what is asked, for messages."""
        ...

    async def fetch(self, paths: Sequence[str]) -> Answers:
        """All of them, at once."""
        ...

    async def close(self) -> None:
        """Close what it opened; the engine's own connections are not its own."""
        ...


class ServerPages:
    """Pages of a server: the engine's own (`owned` false), or one that only tells metrics."""

    def __init__(self, client: ServerClient, *, owned: bool = False, timeout: float = SCRAPE_TIMEOUT) -> None:
        self._client = client
        self._owned = owned
        self._timeout = timeout

    @property
    def url(self) -> str:
        """The server's."""
        return self._client.url

    async def fetch(self, paths: Sequence[str]) -> Answers:
        """Within the engine's time limit."""
        return await self._client.ask_all(paths, timeout=self._timeout)

    async def close(self) -> None:
        """The client, if it is for metrics alone."""
        if self._owned:
            await self._client.close()


@dataclass(frozen=True, slots=True)
class MetricsFeed:
    """One server's metrics: how to get them, and what they mean."""

    reader: PageReader
    pages: MetricsPages

    async def fetch(self) -> Answers:
        """The reader's pages, once."""
        return await self.pages.fetch(self.reader.paths)


def metrics_feed(
    engine: Engine,
    client: ServerClient,
    *,
    config: EngineConfig,
    port: int | None = None,
    connection: ConnectionConfig | None = None,
) -> MetricsFeed | None:
    """Of the server that `client` asks; None for an engine without metrics.

    Where they are: at `config.metrics_url`, else at `port` beside the server, else where this engine usually has them.
    """
    reader = engine.metrics()
    if reader is None:
        return None
    usual = engine.metrics_url(client.url) if port is None else with_port(client.url, port)
    url = usual if config.metrics_url is None else normalise_url(config.metrics_url)
    if url == client.url:
        return MetricsFeed(reader, ServerPages(client, timeout=engine.scrape_timeout))
    return MetricsFeed(reader, ServerPages(ServerClient(url, connection=connection), owned=True))


def with_port(url: str, port: int) -> str:
    """The same host at another port, without a path."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{port}"
