"""A server that is known only through a Prometheus server: it is not asked itself, and its series are read there."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from servetop.core.clock import Clock
from servetop.core.config import ConnectionConfig, EngineConfig
from servetop.core.errors import EngineError
from servetop.engines.attach import attach_engine
from servetop.engines.control.connection import route_to
from servetop.engines.control.control_client import ServerClient
from servetop.engines.control.credentials import prometheus_client
from servetop.engines.control.retry_delay import PageRetries
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.engine import Engine
from servetop.engines.engine_registry import load_engine
from servetop.engines.handle import EngineHandle
from servetop.engines.metrics.metrics_owner import metrics_owner
from servetop.engines.metrics.metrics_reader import GAUGES
from servetop.engines.metrics.metrics_source import metrics_scraper
from servetop.engines.metrics.prometheus_server import (
    QUERY,
    MetricsAddress,
    NamesSeries,
    selector,
    series_names,
)
from servetop.engines.start import engine_facts, read_static_facts
from servetop.engines.watching.watched_server import page_models, with_batch_limit

REACH_SECONDS = 5.0
"""Seconds for the first response of a server whose metrics a Prometheus server has too."""
SCRAPED_PERIOD = 5.0
"""Seconds between two readings of a server's series: a Prometheus server has new ones every 15 s or so."""
PRESENCE_PERIOD = 10.0
"""Seconds between two questions whether the series still exist."""
PRESENCE_TIMEOUT = 5.0
_ADVICE = ": is the server up?"
"""Begins the advice of an error that is none where the server is read elsewhere."""
AFTER_OUTAGE = 150.0
"""Seconds after an outage of the Prometheus server in which a series may be missing: two scrapes of one a minute."""


async def attach_listed(
    config: EngineConfig, clock: Clock, *, headers: Mapping[str, str], metrics: str
) -> EngineHandle:
    """Attach to the watched server at `config.url`, or if it cannot be read itself, to its series at `metrics`.

    Without `metrics` only to the server. EngineError and UsageError as `attach_engine`, EngineError if neither works.
    """
    if not metrics:
        return await attach_engine(config, clock, headers=headers, watched=True)
    config = replace(config, attach_timeout=min(config.attach_timeout, REACH_SECONDS))
    try:
        return await attach_engine(config, clock, headers=headers, watched=True)
    except EngineError as error:
        return await attach_scraped(config, clock, metrics=metrics, unreachable=error)


async def attach_scraped(config: EngineConfig, clock: Clock, *, metrics: str, unreachable: EngineError) -> EngineHandle:
    """Attach to the series of the server at `config.url` that the selector of `metrics` matches.

    EngineError if they are not those of an engine; it begins with `unreachable`, why the server itself was not read.
    """
    address = MetricsAddress.parse(metrics)
    url = ServerUrl.parse(address.url)
    connection = route_to(url.origin, config.connection, os.environ).connection
    client, asking = (
        prometheus_client(url, config=config, environ=os.environ, connection=connection) for _ in range(2)
    )
    try:
        owner = await metrics_owner(asking, match=address.match)
        if owner is None:
            raise EngineError(f"the Prometheus server at {client.url} has no metrics of an engine for it")
        engine, config = load_engine(owner), replace(config, metrics_url=metrics)
        handle = await _scraped(engine, client, clock, config=config, connection=connection)
    except EngineError as error:
        await client.close()
        raise EngineError(f"{unreachable}; {error}") from None
    except BaseException:
        await client.close()
        raise
    why = f"it is read through the Prometheus server at {client.url}: {str(unreachable).partition(_ADVICE)[0]}"
    handle.remark = "; ".join(filter(None, (why, handle.remark)))
    return handle


async def _scraped(
    engine: Engine, client: ServerClient, clock: Clock, *, config: EngineConfig, connection: ConnectionConfig
) -> EngineHandle:
    """Return the handle of a server whose engine is known; EngineError without its series."""
    models = frozenset([config.model]) if config.model else frozenset[str]()
    scraper = metrics_scraper(engine, client, config=config, models=models, connection=connection)
    if scraper is None or not isinstance(scraper.reader, NamesSeries):
        raise EngineError(f"the metrics of {engine.title} are not those of a Prometheus server")
    try:
        known, missing = await read_static_facts(scraper)
        page = (await scraper.fetch())[scraper.reader.paths[0]]
    except BaseException:
        await scraper.pages.close()
        raise
    if missing == GAUGES:
        await scraper.pages.close()
        raise EngineError(f"no metrics from {scraper.pages.where('')} ({page.error or 'none of an engine'})")
    names = page_models(page)
    model = config.model or ", ".join(names) or None
    facts = engine_facts(engine, known, url=config.url or "", model=model, missing=missing)
    facts = replace(facts, models=tuple(names), through=client.url)
    facts, remark = with_batch_limit(facts, config.max_num_seqs)
    handle = ScrapedHandle(engine, facts, client=client, clock=clock, scraper=scraper)
    handle.follow(scraper.reader.series(), MetricsAddress.parse(config.metrics_url or "").match)
    handle.remark, handle.retries = remark, PageRetries()
    return handle


class ScrapedHandle(EngineHandle):
    """A server whose series are read elsewhere: it is gone when they have ended, not when their source is away."""

    _presence = ""
    """The query for the series that exist now."""

    @property
    def url(self) -> str:
        """The address of the server itself, which is not asked."""
        return self.facts.url or ""

    def follow(self, series: frozenset[str], match: str | None) -> None:
        """Ask from now on whether these series exist."""
        self._presence = QUERY + quote(f"count by (__name__) ({selector(series, match)})")

    async def _watch_server(self) -> None:
        """Return once the series have ended, while the Prometheus server answers as it did before.

        A series ends with a scrape that fails, with its target, or five minutes after its last sample.
        """
        answers_since = -math.inf
        while True:
            await self._clock.sleep_until(self._clock.now() + PRESENCE_PERIOD)
            result = await self._client.request(self._presence, timeout=PRESENCE_TIMEOUT)
            now = self._clock.now()
            if not result.ok:
                answers_since = math.inf
            elif series_names(result.json()):
                answers_since = -math.inf
            elif answers_since == math.inf:
                answers_since = now
            elif now - answers_since >= AFTER_OUTAGE:
                self._stop_reason = f"its series have ended in the Prometheus server at {self._client.url}"
                self.died.set()
                return
