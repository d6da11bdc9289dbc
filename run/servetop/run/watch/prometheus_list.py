"""The list of watched servers that a Prometheus server has: the instances that its scrapes match now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines.control.connection import route_to
from servetop.engines.control.control_client import HttpResult
from servetop.engines.control.credentials import prometheus_client
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.metrics.metrics_source import METRICS_KEY_HELP
from servetop.engines.metrics.prometheus_server import ESCAPES, QUERY, MetricsAddress
from servetop.run.watch.addresses import WatchedAddress, distinct

TIMEOUT = 10.0
"""Seconds for one query."""
_SELECTORS = ("?match=", "?match[]=")


def is_prometheus_list(text: str) -> bool:
    """Whether a server of a command line is a Prometheus server with a selector of those to watch."""
    return any(each in text for each in _SELECTORS)


class PrometheusList:
    """The servers behind `http://prom:9090/?match={job="vllm"}`: each `instance` of the series that match.

    A target that is down is still listed, because Prometheus keeps its `up`; it leaves the list with its target.
    """

    def __init__(self, text: str, config: EngineConfig) -> None:
        """UsageError for a selector that cannot be parsed, and for credentials of the metrics that are not set."""
        address = MetricsAddress.parse(text, option="")
        url = ServerUrl.parse(address.url)
        route = route_to(url.origin, config.connection, os.environ)
        self._client = prometheus_client(url, config=config, environ=os.environ, connection=route.connection)
        self._match = address.match or ""
        self._query = f"group by (instance) ({{{self._match}}})"

    @property
    def url(self) -> str:
        """The address of the Prometheus server."""
        return self._client.url

    async def addresses(self) -> Sequence[WatchedAddress]:
        """Return the servers that match now; EngineError if none does, or if the server does not answer."""
        result = await self._client.request(QUERY + quote(self._query), timeout=TIMEOUT)
        if not result.ok:
            raise EngineError(f"no list of servers from the Prometheus server at {self.url} ({_why(result)})")
        found = {each.url: each for each in self._instances(result.json())}
        if not found:
            raise EngineError(
                f"the Prometheus server at {self.url} knows no instance for the query {self._query}: check the selector"
            )
        return distinct(sorted(found.values(), key=lambda each: each.name), where=f"{self.url}: ")

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    def _instances(self, data: Any) -> Iterator[WatchedAddress]:
        """Yield the address of each instance in the response to a query; one that is no address is left out."""
        result = data.get("data") if isinstance(data, dict) else None
        rows = result.get("result") if isinstance(result, dict) else None
        for row in rows if isinstance(rows, list) else ():
            labels = row.get("metric") if isinstance(row, dict) else None
            instance = labels.get("instance") if isinstance(labels, dict) else None
            if isinstance(instance, str) and instance:
                with suppress(UsageError):
                    yield replace(WatchedAddress.parse(instance), metrics=self._metrics_of(instance))

    def _metrics_of(self, instance: str) -> str:
        """Return the address of the series of one instance, in the form of `--metrics-url`."""
        matchers = ",".join(filter(None, (self._match, f'instance="{instance.translate(ESCAPES)}"')))
        return f"{self.url}/?match={quote(f'{{{matchers}}}')}"


def _why(result: HttpResult) -> str:
    if result.status in (401, 403):
        return f"HTTP {result.status}: {METRICS_KEY_HELP}"
    body = result.json() if result.status else None
    error = body.get("error") if isinstance(body, dict) else None
    return result.error or (f"HTTP {result.status}: {error}" if isinstance(error, str) else f"HTTP {result.status}")
