"""A Prometheus server as the source of an engine's metrics: its newest samples, written as the engine's own page.

An instant query returns values with the time of the query. A range selector returns the samples as they were
scraped, with the time of the scrape, from which their age follows (prometheus.io, "Querying: HTTP API").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote, unquote

from servetop.core.errors import UsageError
from servetop.engines.control.control_client import HttpResult, HttpResults, ServerClient
from servetop.engines.control.http_body import excerpt
from servetop.engines.control.patient_client import PatientClient

LOOK_BACK = 120
"""Seconds within which a sample must have been scraped: two scrapes, at Prometheus' own usual pace of one a minute."""
QUERY = "/api/v1/query?query="
SERVER_TIME = QUERY + quote("time()")
"""Queried with the samples, so that their age is measured by the clock that stamped them."""
MISSED_SCRAPES = 2.0
"""A series older than the newest one by this many of its scrape intervals belongs to a stopped server: ignored."""
NAMES_SHOWN = 3
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@runtime_checkable
class NamesSeries(Protocol):
    """A `MetricsReader` that can say which series it looks for, and so can be fed by a Prometheus server."""

    def series(self) -> frozenset[str]:
        """Names of samples, `_total`, `_sum` and `_count` included."""
        ...


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """What `--metrics-url` says: an address, and for a Prometheus server, which of its series."""

    url: str
    """As it was written, without the selector."""
    match: str | None = None
    """Label matchers without their braces, as in `instance="gpu7:8000"`; None: all of the engine's series."""

    @classmethod
    def parse(cls, text: str) -> MetricsAddress:
        """`http://prom:9090/?match={instance="gpu7:8000"}`; Prometheus' own `match[]=` is understood too."""
        url, _, query = text.strip().partition("?")
        if not query:
            return cls(url)
        name, _, selector = unquote(query).partition("=")
        selector = selector.strip()
        if name not in ("match", "match[]") or not (selector.startswith("{") and selector.endswith("}")):
            raise UsageError(
                f"--metrics-url {text!r}: what follows the ? must be a selector, "
                'as in http://prom:9090/?match={instance="gpu7:8000"}'
            )
        return cls(url, selector[1:-1].strip().strip(","))


@dataclass(frozen=True, slots=True)
class Scraped:
    """What Prometheus knows of the wanted series."""

    page: bytes
    """The newest sample of each series, as a text page."""
    at: float
    """When the newest of them was scraped, in Unix seconds by the server's clock."""


class PrometheusSource:
    """`MetricsSource` of a Prometheus server, for a reader of one page or of many: each of them holds all series."""

    def __init__(self, client: ServerClient, series: frozenset[str], *, match: str | None, timeout: float) -> None:
        self._client = client
        self._series = series
        self._match = match
        self._patient = PatientClient(client, timeout=timeout)
        self._query = QUERY + quote(self._expression())

    @property
    def url(self) -> str:
        """The Prometheus server's."""
        return self._client.url

    def where(self, path: str) -> str:
        """Its address: it has no such page."""
        del path
        return f"the Prometheus server at {self.url}"

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """One question; the answer's `age` is that of the newest sample."""
        results = await self._patient.get_all((self._query, SERVER_TIME))
        return dict.fromkeys(paths, self._answer(results[self._query], results[SERVER_TIME]))

    async def close(self) -> None:
        """Its connections are for metrics alone."""
        await self._client.close()

    def _expression(self) -> str:
        names = "|".join(sorted(self._series))
        matchers = f'__name__=~"{names}"' + (f",{self._match}" if self._match else "")
        return f"{{{matchers}}}[{LOOK_BACK}s]"

    def _answer(self, result: HttpResult, clock: HttpResult) -> HttpResult:
        if not result.ok:
            return HttpResult(error=result.error or _refusal(result), refused=result.refused)
        scraped = newest_samples(result.json())
        if scraped is None:
            return HttpResult(error=self._nothing())
        now = server_time(clock.json())
        return HttpResult(200, scraped.page, age=0.0 if now is None else max(0.0, now - scraped.at))

    def _nothing(self) -> str:
        names = sorted(self._series)
        if not names:
            return "this engine's metrics are no Prometheus series: leave out --metrics-url"
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        selector = f" with {{{self._match}}}" if self._match else ""
        return (
            f"none of {', '.join(names[:NAMES_SHOWN])}{more}{selector} was scraped in the last {LOOK_BACK} s: "
            "does it scrape this engine, and is ?match={…} right?"
        )


def is_prometheus(result: HttpResult) -> bool:
    """Whether this answer to `SERVER_TIME` came from Prometheus, or from what speaks its API."""
    return server_time(result.json()) is not None


def server_time(data: Any) -> float | None:
    """Unix seconds from the answer to `time()`, a scalar (or, from some, a vector of one); None for anything else."""
    result = _result(data)
    if isinstance(result, list) and len(result) == 1 and isinstance(result[0], dict):
        result = result[0].get("value")
    return None if (pair := _pair(result)) is None else _number(pair[1])


def newest_samples(data: Any) -> Scraped | None:
    """From the answer to a range selector; None when there is no sample in it."""
    rows = [each for each in _result(data) or () if isinstance(each, dict)]
    found = [row for each in rows if (row := _row(each)) is not None]
    if not found:
        return None
    newest = max(row.at for row in found)
    lines = [row.line for row in found if newest - row.at <= MISSED_SCRAPES * row.every]
    return Scraped("".join(lines).encode(), newest)


@dataclass(frozen=True, slots=True)
class _Row:
    line: str
    at: float
    every: float
    """Seconds between its scrapes, as they came; inf after one."""


def _row(series: dict[str, Any]) -> _Row | None:
    labels, values = series.get("metric"), series.get("values")
    pairs = [pair for each in values if (pair := _pair(each)) is not None] if isinstance(values, list) else []
    if not pairs or not isinstance(labels, dict) or not isinstance(labels.get("__name__"), str):
        return None
    first, last = _number(pairs[0][0]), _number(pairs[-1][0])
    if first is None or last is None:
        return None
    every = (last - first) / (len(pairs) - 1) if len(pairs) > 1 else math.inf
    return _Row(f"{labels['__name__']}{{{','.join(_labels(labels))}}} {pairs[-1][1]}\n", last, every)


def _labels(labels: dict[str, Any]) -> Iterator[str]:
    for name, value in labels.items():
        if name != "__name__":
            yield f'{name}="{str(value).translate(_ESCAPES)}"'


def _result(data: Any) -> Any:
    if not isinstance(data, dict) or data.get("status") != "success" or not isinstance(data.get("data"), dict):
        return None
    result = data["data"].get("result")
    return result if isinstance(result, list) else None


def _pair(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) and len(value) == 2 else None


def _number(value: Any) -> float | None:
    """Parse a finite number; None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _refusal(result: HttpResult) -> str:
    return f"HTTP {result.status}: {excerpt(result.body, 120)}"
