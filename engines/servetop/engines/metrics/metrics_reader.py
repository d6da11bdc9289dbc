"""From an engine's metrics page to an `EngineSample`, by a table: which series feeds which field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Protocol

from servetop.core.bounds import LARGEST_VALUE
from servetop.core.events import EngineSample
from servetop.engines.metrics.prometheus_text import PrometheusSample, scan
from servetop.engines.server_facts import ServerFacts

GAUGES = tuple(each.name for each in fields(EngineSample) if not each.name.startswith("scrape_"))
"""The fields of EngineSample that an engine may or may not export."""

_NUMBER = re.compile(r"[0-9]{1,15}")

Found = Mapping[str, list[PrometheusSample]]


Pages = Mapping[str, bytes]
"""Bodies by path, of the pages that answered."""


class MetricsReader(Protocol):
    """What a sampler must know of an engine's metrics: where they are and what they mean.

    It may keep what it saw for the next page: each running engine has a reader of its own.
    """

    @property
    def paths(self) -> Sequence[str]:
        """Its pages, such as `/metrics`; the first is the one that there must be."""
        ...

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """The pages as a sample scraped from `start` to `end` of the run; None when they are not this engine's."""
        ...

    def facts(self, pages: Pages) -> ServerFacts:
        """What the pages say that does not change while the engine runs."""
        ...

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """Fields of EngineSample that this engine does not export, as far as these pages tell."""
        ...


class Fold(Enum):
    """How the rows of one series become one number: an engine with several ranks exports a row for each."""

    SUM = "sum"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """Where a field comes from: names by preference, of which the first one on the page counts."""

    names: tuple[str, ...]
    fold: Fold = Fold.SUM
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only rows that carry all of these."""
    scale: float = 1.0
    """From the series' unit to the field's: 1e-6 for microseconds."""
    absent: float | None = None
    """What it means that the series is not on the page: 0 for a counter that only appears when it first counts."""

    def value(self, found: Found) -> float | None:
        """The folded number; None when no name is there, or when it is negative, NaN or above LARGEST_VALUE."""
        rows = next((found[name] for name in self.names if name in found), [])
        values = [row.value for row in rows if not self.labels or self.labels.items() <= row.labels.items()]
        if not values:
            return self.absent
        total = sum(values) * self.scale
        if min(values) < 0 or not 0 <= total <= LARGEST_VALUE:
            return None
        return total / (len(values) if self.fold is Fold.MEAN else 1)


def gauge(
    *names: str, labels: Mapping[str, str] | None = None, scale: float = 1.0, absent: float | None = None
) -> MetricSeries:
    """A value of the moment, added over the engine's ranks; also a histogram's `_sum` or `_count`."""
    return MetricSeries(names, labels=labels or {}, scale=scale, absent=absent)


def share(*names: str) -> MetricSeries:
    """A value between 0 and 1, averaged over the engine's ranks."""
    return MetricSeries(names, fold=Fold.MEAN)


def counter(*names: str, scale: float = 1.0, absent: float | None = None) -> MetricSeries:
    """A counter, added over all its rows; each name is looked for with `_total` and without."""
    return MetricSeries(
        tuple(f"{name}{ending}" for name in names for ending in ("_total", "")), scale=scale, absent=absent
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheInfo:
    """An engine's KV cache as labels of an info series: one row a rank, the numbers in its labels."""

    name: str
    blocks: str
    """Label with the number of blocks."""
    block_size: str
    """Label with the tokens a block holds."""
    reserved: int = 0
    """Blocks of each rank that never hold a request (vLLM V1 keeps block 0 as its null block)."""
    reserved_unless: str = ""
    """A series that only engines without reserved blocks export."""

    def total(self, found: Found) -> float | None:
        """Usable blocks, added over the ranks."""
        counts = [int(text) for text in _labels(found, self.name, self.blocks) if _NUMBER.fullmatch(text)]
        reserved = 0 if self.reserved_unless in found else self.reserved
        return float(sum(count - reserved for count in counts)) if counts and min(counts) > reserved else None

    def tokens_a_block(self, found: Found) -> int | None:
        """Tokens that a block holds, by the first rank."""
        return next((int(text) for text in _labels(found, self.name, self.block_size) if _NUMBER.fullmatch(text)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricMap:
    """A `MetricsReader` for Prometheus text: fields of EngineSample and the series that feed them."""

    fields: Mapping[str, MetricSeries]
    cache: CacheInfo | None = None
    path: str = "/metrics"
    block_size: int | None = None
    """Tokens that a KV block holds, where no series tells: 1 for an engine that counts tokens."""
    lazy: bool = False
    """Series appear with their first use: a page without any is one of an engine that was not used yet."""

    @property
    def paths(self) -> Sequence[str]:
        """One page."""
        return (self.path,)

    def sample(self, pages: Pages, *, start: float, end: float) -> EngineSample | None:
        """None when none of the table's series is on the page."""
        found = self._scan(pages)
        if not found and not (self.lazy and self.path in pages):
            return None
        values = {name: series.value(found) for name, series in self.fields.items()}
        if values.get("kv_blocks_total") is None and self.cache is not None:
            values["kv_blocks_total"] = self.cache.total(found)
        return with_derived_kv_usage(EngineSample(scrape_start=start, scrape_end=end, **values))

    def facts(self, pages: Pages) -> ServerFacts:
        """The size of the KV cache, and the batch-size limit where the engine exports one."""
        found = self._scan(pages)
        total = self.cache.total(found) if self.cache else None
        if (series := self.fields.get("kv_blocks_total")) is not None:
            total = series.value(found) or total
        limit = self.fields["max_num_seqs"].value(found) if "max_num_seqs" in self.fields else None
        return ServerFacts(
            kv_blocks_total=None if total is None else round(total),
            block_size=self.cache.tokens_a_block(found) if self.cache else self.block_size,
            max_num_seqs=None if limit is None else round(limit),
        )

    def missing(self, pages: Pages) -> tuple[str, ...]:
        """What is not on the page; of a lazy engine, what the table does not know."""
        known = with_derived_kv_usage(EngineSample(scrape_start=0.0, scrape_end=0.0, **dict.fromkeys(self.fields, 1.0)))
        return not_exported(known if self.lazy else self.sample(pages, start=0.0, end=0.0))

    def series(self) -> frozenset[str]:
        """All names that it looks for on its page."""
        cache = (self.cache.name, self.cache.reserved_unless) if self.cache else ()
        return frozenset([*cache, *(name for series in self.fields.values() for name in series.names)]) - {""}

    def _scan(self, pages: Pages) -> Found:
        return scan(pages.get(self.path, b"").decode("utf-8", errors="replace"), self.series())


def with_derived_kv_usage(sample: EngineSample) -> EngineSample:
    """Of the KV cache's share, used and total, the one that the other two tell; a share above 1 is not known."""
    usage, used, total = sample.kv_usage, sample.kv_blocks_used, sample.kv_blocks_total
    if usage is None and used is not None and total:
        usage = used / total
    if usage is not None and usage > 1:
        usage = None
    if used is None and usage is not None and total is not None:
        used = float(round(usage * total))
    return replace(sample, kv_usage=usage, kv_blocks_used=used)


def not_exported(sample: EngineSample | None) -> tuple[str, ...]:
    """Fields of EngineSample that are None in this sample; all of them without a sample."""
    return tuple(name for name in GAUGES if getattr(sample, name, None) is None)


def _labels(found: Found, name: str, label: str) -> Iterable[str]:
    return (row.labels.get(label, "") for row in found.get(name, ()))
