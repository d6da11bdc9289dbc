"""Maps the series of an engine's metrics page to the fields of an `EngineSample`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import Protocol

from servetop.analysis.exported.failure_counters import SHARED_SERIES
from servetop.core.bounds import LARGEST_VALUE
from servetop.core.events import EngineSample
from servetop.engines.metrics.prometheus_text import PrometheusSample, is_text
from servetop.engines.metrics.server_pages import PageRows, page_rows
from servetop.engines.server_facts import ServerFacts

GAUGES = tuple(each.name for each in fields(EngineSample) if not each.name.startswith("scrape_"))
"""The fields of EngineSample, each of which an engine may or may not export."""

SCRAPE_TIMEOUT = 1.0
"""Seconds until a scrape times out; a later page would be too old to show as current."""
_NUMBER = re.compile(r"[0-9]{1,15}")
_KV_FIELDS = ("kv_usage", "kv_blocks_used", "kv_blocks_total")


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The rows of a page that a reader wants, by name and each with its place, and the values by place."""

    rows: Mapping[str, Sequence[tuple[int, PrometheusSample]]]
    """Only the labels of these samples count: they may be of an earlier page with the same rows."""
    values: Sequence[float]

    def labels(self, name: str, label: str) -> Iterable[str]:
        """Yield the value of a label on each row of a series; empty for a row without it."""
        return (row.labels.get(label, "") for _, row in self.rows.get(name, ()))


Places = tuple[int, ...]
"""The places of rows, by which their values are found."""
Pages = Mapping[str, bytes]
"""Bodies of the fetched pages, by path."""


class MetricsReader(Protocol):
    """Reads an engine's metrics: paths of the pages, and their conversion to a sample.

    A reader may keep state between scrapes: each running engine has its own.
    """

    @property
    def paths(self) -> Sequence[str]:
        """Paths of the pages, such as `/metrics`; the first one is required."""
        ...

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """Convert pages scraped from `start` to `end` (run time) to a sample; None if they are another engine's."""
        ...

    def facts(self, pages: Pages) -> ServerFacts:
        """Read the facts that do not change while the engine runs."""
        ...

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """Return the fields of EngineSample that these pages do not export."""
        ...


class FieldSource(Protocol):
    """What a field of EngineSample is read from."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the series that are read."""
        ...

    @property
    def absent(self) -> float | None:
        """Value if the series is missing."""
        ...

    def places(self, found: Found) -> Places | None:
        """Return the rows that count, by names and labels alone; None if the series is missing."""
        ...

    def total(self, values: Sequence[float]) -> float | None:
        """Aggregate the values of these rows; None if that is impossible."""
        ...


class Fold(Enum):
    """How the rows of one series are aggregated; an engine with several ranks exports one row per rank."""

    SUM = "sum"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """The source of a field: series names by preference, of which the first one on the page is used."""

    names: tuple[str, ...]
    fold: Fold = Fold.SUM
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only rows with all of these labels count."""
    scale: float = 1.0
    """From the series' unit to the field's: 1e-6 for microseconds."""
    absent: float | None = None
    """Value if the series is missing: 0 for a counter that appears with its first increment."""

    def places(self, found: Found) -> Places | None:
        """Return the rows of the first series on the page that have the labels; None if there are none."""
        rows = next((found.rows[name] for name in self.names if name in found.rows), ())
        places = (place for place, row in rows if not self.labels or self.labels.items() <= row.labels.items())
        return tuple(places) or None

    def total(self, values: Sequence[float]) -> float | None:
        """Aggregate the values, at least one; None if one is negative, or their sum NaN or above LARGEST_VALUE."""
        total = sum(values) * self.scale
        if min(values) < 0 or not 0 <= total <= LARGEST_VALUE:
            return None
        return total / (len(values) if self.fold is Fold.MEAN else 1)


def gauge(
    *names: str, labels: Mapping[str, str] | None = None, scale: float = 1.0, absent: float | None = None
) -> MetricSeries:
    """Return a gauge, summed over the engine's ranks; also a histogram's `_sum` or `_count`."""
    return MetricSeries(names, labels=labels or {}, scale=scale, absent=absent)


def share(*names: str) -> MetricSeries:
    """Return a ratio from 0 to 1, averaged over the engine's ranks."""
    return MetricSeries(names, fold=Fold.MEAN)


def counter(*names: str, scale: float = 1.0, absent: float | None = None) -> MetricSeries:
    """Return a counter, summed over all its rows; each name is tried with and without `_total`."""
    return MetricSeries(
        tuple(f"{name}{ending}" for name in names for ending in ("_total", "")), scale=scale, absent=absent
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheInfo:
    """The size of the KV cache in the labels of an info series, with one row per rank."""

    name: str
    blocks: str
    """Label with the number of blocks."""
    block_size: str
    """Label with the tokens per block."""
    reserved: int = 0
    """Blocks of each rank that never hold a request (vLLM V1 keeps block 0 as its null block)."""
    reserved_unless: str = ""
    """A series that only engines without reserved blocks export."""

    def total(self, found: Found) -> float | None:
        """Return the usable blocks, summed over the ranks."""
        counts = [int(text) for text in found.labels(self.name, self.blocks) if _NUMBER.fullmatch(text)]
        reserved = 0 if self.reserved_unless in found.rows else self.reserved
        return float(sum(count - reserved for count in counts)) if counts and min(counts) > reserved else None

    def tokens_per_block(self, found: Found) -> int | None:
        """Return the tokens per block of the first rank."""
        return next((int(text) for text in found.labels(self.name, self.block_size) if _NUMBER.fullmatch(text)), None)


def value_of(source: FieldSource, found: Found) -> float | None:
    """Return the value of a field by the rows of a page; None if it is not there, or impossible."""
    return _value(source, source.places(found), found.values)


def _value(source: FieldSource, places: Places | None, values: Sequence[float]) -> float | None:
    return source.absent if places is None else source.total([values[place] for place in places])


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """What a `MetricMap` finds in the rows of a page whatever their values are."""

    names: Set[str]
    places: Mapping[str, Places | None]
    """The rows of each field."""
    cached_blocks: float | None
    """The size of the KV cache by labels."""
    reader: MetricMap
    """Kept with it, so that its `id` stays its own."""


@dataclass(frozen=True, kw_only=True)
class MetricMap:
    """A `MetricsReader` for Prometheus text: fields of EngineSample and their series."""

    fields: Mapping[str, FieldSource]
    cache: CacheInfo | None = None
    path: str = "/metrics"
    block_size: int | None = None
    """Tokens per KV block, if no series has it: 1 for an engine that counts tokens."""
    lazy: bool = False
    """Series appear with their first use: a page without any is from an idle engine."""

    @property
    def paths(self) -> Sequence[str]:
        """The single metrics path."""
        return (self.path,)

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """Convert the page to a sample; None if none of the table's series is on it, or for HTML and JSON."""
        found = page_rows(pages, self.path, self._series)
        layout = found.derived.get(id(self))
        if layout is None:
            layout = found.derived[id(self)] = self._layout(found)
        if not layout.names - SHARED_SERIES and not (self.lazy and self.path in pages and is_text(pages[self.path])):
            return None
        places = layout.places
        values = {name: _value(series, places[name], found.values) for name, series in self.fields.items()}
        if values.get("kv_blocks_total") is None and self.cache is not None:
            values["kv_blocks_total"] = layout.cached_blocks
        return EngineSample(scrape_start=start, scrape_end=end, **with_derived_usage(values))

    def facts(self, pages: Pages) -> ServerFacts:
        """Read the size of the KV cache, and the batch-size limit if it is exported."""
        found = self._scan(pages)
        total = self.cache.total(found) if self.cache else None
        if (series := self.fields.get("kv_blocks_total")) is not None:
            total = value_of(series, found) or total
        limit = value_of(self.fields["max_num_seqs"], found) if "max_num_seqs" in self.fields else None
        return ServerFacts(
            kv_blocks_total=None if total is None else round(total),
            block_size=self.cache.tokens_per_block(found) if self.cache else self.block_size,
            max_num_seqs=None if limit is None else round(limit),
        )

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """Return the fields not on the page; for a lazy engine those not in the table."""
        known = with_derived_kv_usage(EngineSample(scrape_start=0.0, scrape_end=0.0, **dict.fromkeys(self.fields, 1.0)))
        return not_exported(known if self.lazy else self.sample(pages, start=0.0, end=0.0))

    def series(self) -> frozenset[str]:
        """Return all series names that the reader uses."""
        return self._series

    @cached_property
    def _series(self) -> frozenset[str]:
        cache = (self.cache.name, self.cache.reserved_unless) if self.cache else ()
        return frozenset([*cache, *(name for series in self.fields.values() for name in series.names)]) - {""}

    def _layout(self, page: PageRows) -> _Layout:
        found = _by_name(page)
        places = {name: source.places(found) for name, source in self.fields.items()}
        cached = None if self.cache is None else self.cache.total(found)
        return _Layout(found.rows.keys(), places, cached, reader=self)

    def _scan(self, pages: Pages) -> Found:
        return found_rows(pages, self.path, self._series)


def found_rows(pages: Pages, path: str, names: frozenset[str]) -> Found:
    """Return the rows of these series of a page; none if it was not fetched."""
    return _by_name(page_rows(pages, path, names))


def _by_name(page: PageRows) -> Found:
    rows: dict[str, list[tuple[int, PrometheusSample]]] = {}
    for place, (name, row) in enumerate(page.rows):
        rows.setdefault(name, []).append((place, row))
    return Found(rows, page.values)


def with_derived_kv_usage(sample: EngineSample) -> EngineSample:
    """Derive KV usage or used blocks from the other values; a usage above 1 becomes None."""
    values = {name: getattr(sample, name) for name in _KV_FIELDS}
    derived = with_derived_usage(values)
    if derived == values:
        return sample
    return replace(sample, kv_usage=derived["kv_usage"], kv_blocks_used=derived["kv_blocks_used"])


def with_derived_usage(values: dict[str, float | None]) -> dict[str, float | None]:
    """Return the values of fields by name with KV usage or used blocks derived, as `with_derived_kv_usage` does."""
    usage, used, total = map(values.get, _KV_FIELDS)
    if usage is None and used is not None and total:
        usage = used / total
    if usage is not None and usage > 1:
        usage = None
    if used is None and usage is not None and total is not None:
        used = float(round(usage * total))
    return {**values, "kv_usage": usage, "kv_blocks_used": used}


def not_exported(sample: EngineSample | None) -> tuple[str, ...]:
    """Return the fields that are None in this sample; all of them without a sample."""
    return tuple(name for name in GAUGES if getattr(sample, name, None) is None)
