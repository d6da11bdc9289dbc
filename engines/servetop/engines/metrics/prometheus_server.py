"""Reads an engine's metrics from a Prometheus server: its newest samples, formatted like the engine's own page.

An instant query returns values with the time of the query. A range selector returns the samples as they were
scraped, with the time of the scrape, from which their age follows (prometheus.io, "Querying: HTTP API").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable
from urllib.parse import quote, unquote

from servetop.analysis.exported.failure_counters import SHARED_SERIES
from servetop.core.errors import UsageError
from servetop.engines.control.control_client import HttpResult, HttpResults, ServerClient
from servetop.engines.control.http_body import excerpt
from servetop.engines.control.patient_client import PatientClient

MAX_AGE = 120
"""Maximum age of a sample in seconds: two scrapes at Prometheus' default of one per minute."""
QUERY = "/api/v1/query?query="
SERVER_TIME = QUERY + quote("time()")
"""Queried with the samples, so that their age is measured by the server's clock."""
MISSED_SCRAPES = 2.0
"""A series older than the newest one by this many of its scrape intervals belongs to a stopped server: ignored."""
NAMES_SHOWN = 3
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@runtime_checkable
class NamesSeries(Protocol):
    """A `MetricsReader` that lists the series it uses, so that a Prometheus server can supply them."""

    def series(self) -> frozenset[str]:
        """Return the names of samples, including `_total`, `_sum` and `_count`."""
        ...


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """The value of `--metrics-url`: an address, and for a Prometheus server a selector of its series."""

    url: str
    """The address without the selector."""
    match: str | None = None
    """Label matchers without their braces, as in `instance="gpu7:8000"`; None: all of the engine's series."""

    @classmethod
    def parse(cls, text: str, *, option: str = "--metrics-url ") -> MetricsAddress:
        """Parse `http://prom:9090/?match={instance="gpu7:8000"}`; Prometheus' own `match[]=` is also accepted.

        UsageError, which begins with `option`, for another part after the `?`.
        """
        url, _, query = text.strip().partition("?")
        if not query:
            return cls(url)
        name, _, selector = unquote(query).partition("=")
        selector = selector.strip()
        if name not in ("match", "match[]") or not (selector.startswith("{") and selector.endswith("}")):
            raise UsageError(
                f"{option}{text!r}: the part after the ? must be a selector, "
                'as in http://prom:9090/?match={instance="gpu7:8000"}'
            )
        return cls(url, selector[1:-1].strip().strip(","))


@dataclass(frozen=True, slots=True)
class Scraped:
    """The newest samples of the requested series."""

    page: bytes
    """The newest sample of each series, as a metrics page."""
    at: float
    """When the newest of them was scraped, in Unix seconds by the server's clock."""


class PrometheusSource:
    """Fetches metrics from a Prometheus server; every page of the reader contains all series.

    The reader's `series` are queried each time, to notice a new scrape, and the `further` ones once per scrape: their
    histograms are large. Series that other programs have too are left out unless a selector chooses among them.
    """

    def __init__(
        self,
        client: ServerClient,
        series: frozenset[str],
        *,
        further: frozenset[str] = frozenset(),
        match: str | None,
        timeout: float,
    ) -> None:
        self._client = client
        if match is None:
            series, further = series - SHARED_SERIES, further - SHARED_SERIES
        self._series = series
        self._match = match
        self._patient = PatientClient(client, timeout=timeout)
        self._query = QUERY + quote(f"{selector(series, match)}[{MAX_AGE}s]")
        rest = further - series
        self._further_query = QUERY + quote(selector(rest, match)) if rest else ""
        self._further_page = b""
        self._scraped_at = -math.inf

    @property
    def url(self) -> str:
        """URL of the Prometheus server."""
        return self._client.url

    def where(self, path: str) -> str:
        """Return the server's address, because it does not have the engine's page."""
        del path
        return f"the Prometheus server at {self.url}"

    async def fetch(self, paths: Sequence[str]) -> HttpResults:
        """Query the samples and the server's time; the result's `age` is that of the newest sample."""
        results = await self._patient.get_all((self._query, SERVER_TIME))
        result = results[self._query]
        scraped = newest_samples(result.json()) if result.ok else None
        if scraped is not None and scraped.at > self._scraped_at and self._further_query:
            self._scraped_at = scraped.at
            answer = (await self._patient.get_all((self._further_query,)))[self._further_query]
            self._further_page = current_samples(answer.json())
        return dict.fromkeys(paths, self._to_page(result, scraped, results[SERVER_TIME]))

    async def close(self) -> None:
        """Close the client, which is used for metrics only."""
        await self._client.close()

    def _to_page(self, result: HttpResult, scraped: Scraped | None, clock: HttpResult) -> HttpResult:
        if not result.ok:
            return HttpResult(error=result.error or _http_error(result), refused=result.refused)
        if scraped is None:
            return HttpResult(error=self._no_samples())
        now = server_time(clock.json())
        page = scraped.page + self._further_page
        age = 0.0 if now is None else max(0.0, now - scraped.at)
        return HttpResult(200, page, age=age, scraped_at=scraped.at)

    def _no_samples(self) -> str:
        names = sorted(self._series, key=lambda name: (name in SHARED_SERIES, name))
        if not names:
            return "this engine's metrics are not Prometheus series: leave out --metrics-url"
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        matched = f" with {{{self._match}}}" if self._match else ""
        return (
            f"none of {', '.join(names[:NAMES_SHOWN])}{more}{matched} was scraped in the last {MAX_AGE} s: "
            "does it scrape this engine, and is ?match={…} right?"
        )


def selector(names: Iterable[str], match: str | None) -> str:
    """Return an instant selector of the series whose names match one of these patterns, with further label matchers."""
    return f'{{__name__=~"{"|".join(sorted(names))}"{f",{match}" if match else ""}}}'


def is_prometheus(result: HttpResult) -> bool:
    """Whether this response to `SERVER_TIME` is from Prometheus or a server with its API."""
    return server_time(result.json()) is not None


def server_time(data: Any) -> float | None:
    """Parse the response to `time()` to Unix seconds; None if it is neither a scalar nor a vector of one."""
    result = _result(data)
    if isinstance(result, list) and len(result) == 1 and isinstance(result[0], dict):
        result = result[0].get("value")
    return None if (pair := _pair(result)) is None else _number(pair[1])


def newest_samples(data: Any) -> Scraped | None:
    """Parse the response to a range selector; None if it has no samples.

    Rows of SHARED_SERIES count only of targets that have other rows: those of the engine.
    """
    rows = [each for each in _result(data) or () if isinstance(each, dict)]
    read = [row for each in rows if (row := _row(each)) is not None]
    own = {row.target for row in read if not row.shared}
    found = [row for row in read if not row.shared or row.target in own]
    if not found:
        return None
    newest = max(row.at for row in found)
    lines = [row.line for row in found if newest - row.at <= MISSED_SCRAPES * row.interval]
    return Scraped("".join(lines).encode(), newest)


def current_samples(data: Any) -> bytes:
    """Format the response to an instant selector as a metrics page; empty if it has no samples."""
    found = ((each.get("metric"), _pair(each.get("value"))) for each in _result(data) or () if isinstance(each, dict))
    return "".join(_line(labels, pair[1]) for labels, pair in found if pair is not None and _named(labels)).encode()


def series_names(data: Any) -> list[str]:
    """Return the names in the response to a query by name."""
    labels = [each.get("metric") for each in _result(data) or () if isinstance(each, dict)]
    return [each["__name__"] for each in labels if _named(each)]


@dataclass(frozen=True, slots=True)
class _Row:
    line: str
    at: float
    interval: float
    """Mean seconds between its scrapes; inf for a single one."""
    target: tuple[str, ...]
    """Job and instance that it was scraped from."""
    shared: bool
    """Whether programs that are no engine have series of its name too."""


def _row(series: dict[str, Any]) -> _Row | None:
    labels, values = series.get("metric"), series.get("values")
    pairs = [pair for each in values if (pair := _pair(each)) is not None] if isinstance(values, list) else []
    if not pairs or not _named(labels):
        return None
    first, last = _number(pairs[0][0]), _number(pairs[-1][0])
    if first is None or last is None:
        return None
    interval = (last - first) / (len(pairs) - 1) if len(pairs) > 1 else math.inf
    return _Row(
        line=_line(labels, pairs[-1][1]),
        at=last,
        interval=interval,
        target=tuple(str(labels.get(name)) for name in ("job", "instance")),
        shared=labels["__name__"] in SHARED_SERIES,
    )


def _named(labels: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(labels, dict) and isinstance(labels.get("__name__"), str)


def _line(labels: dict[str, Any], value: Any) -> str:
    return f"{labels['__name__']}{{{','.join(_labels(labels))}}} {value}\n"


def _labels(labels: dict[str, Any]) -> Iterator[str]:
    for name, value in labels.items():
        if name != "__name__":
            yield f'{name}="{str(value).translate(ESCAPES)}"'


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


def _http_error(result: HttpResult) -> str:
    return f"HTTP {result.status}: {excerpt(result.body, 120)}"
