"""Collects the series of the engine page, and the start of the process, at most once a second, and packs them."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.exported.metric_spec import REPLICA, MetricKind, MetricSpec, wanted_labels
from servetop.core.bounds import LARGEST_VALUE
from servetop.core.interfaces.series_scrape import MAX_SERIES, PROCESS_START, SeriesScrape, pack_numbers
from servetop.engines.metrics.lora_requests import ADAPTER, lora_rows
from servetop.engines.metrics.metrics_reader import Pages
from servetop.engines.metrics.prometheus_text import PrometheusSample
from servetop.engines.metrics.server_pages import Rows, page_rows

SERIES_PERIOD = 1.0
"""Seconds from one collection to the next, at the most frequent."""
NAMES_PERIOD = 300.0
"""Seconds after which the names are recorded again, so that the loss of one row does not lose the rest of the run."""
_EARLY = 0.1
"""Scrapes are at multiples of a tick, give or take the time of a response."""
_LONGEST_LABEL = 48
_UNSAFE = str.maketrans(dict.fromkeys("{},=\n", "_"))


@dataclass(frozen=True, slots=True)
class SeriesReading:
    """The collected series of one scrape, by name with labels, such as `vllm:request_success_total{reason=stop}`."""

    at: float
    """End of the scrape, seconds since the run's origin."""
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """The keys of some rows, and whether all of them differ."""

    rows: Rows
    texts: tuple[str, ...]
    differ: bool


class SeriesCollector:
    """The further series of one server. A counter that vanishes from the page keeps its last value, a gauge does not.

    So a server that omits unused counters while it is idle does not seem to start them again from 0.
    """

    def __init__(self, specs: Sequence[MetricSpec]) -> None:
        self._wanted = {PROCESS_START: (), **wanted_labels(specs)}
        gauges = (spec for spec in specs if spec.kind is MetricKind.GAUGE)
        self._gauges = frozenset(
            (PROCESS_START, *(name for spec in gauges for names in spec.samples for name in names))
        )
        self._due = -math.inf
        self._last: dict[str, float] = {}
        """The values of the last reading."""
        self._reading: SeriesReading | None = None
        self._names = frozenset(self._wanted)
        self._keys: dict[str, _Keys] = {}
        """Those of the last page of each path that had other rows than the one before."""

    def collect(self, pages: Pages, *, at: float) -> None:
        """Read the pages of a scrape that ended at `at`, if a reading is due, as it is every SERIES_PERIOD.

        A late response leaves the next reading due when it was, or a scrape once a second would be left out after it.
        """
        if at < self._due - _EARLY:
            return
        self._due = (self._due if at - self._due < SERIES_PERIOD / 2 else at) + SERIES_PERIOD
        found: dict[str, float] = {}
        for path, page in pages.items():
            for series, adapter, value in lora_rows(page, self._wanted):
                found[_with_pairs(series, [(ADAPTER, adapter)] if adapter else [])] = value
            keys, values = self._rows(pages, path)
            if keys.differ and _all_possible(values) and found.keys().isdisjoint(keys.texts):
                found.update(zip(keys.texts, values, strict=True))
                continue
            for key, value in zip(keys.texts, values, strict=True):
                if abs(value) <= LARGEST_VALUE:  # False for NaN
                    found[key] = found.get(key, 0.0) + value
        if not self._last.keys() <= found.keys():
            found |= {key: value for key, value in self._last.items() if key not in found and self._is_counter(key)}
        self._last = found if len(found) <= MAX_SERIES else dict(list(found.items())[:MAX_SERIES])
        self._reading = SeriesReading(at, self._last) if self._last else None

    def _is_counter(self, key: str) -> bool:
        return key.partition("{")[0] not in self._gauges

    def _rows(self, pages: Pages, path: str) -> tuple[_Keys, Sequence[float]]:
        """Return the keys and the values of the wanted rows of a page."""
        rows, values, _ = page_rows(pages, path, self._names)
        known = self._keys.get(path)
        if known is None or known.rows is not rows:
            texts = tuple(_key(name, self._wanted[name], row) for name, row in rows)
            known = self._keys[path] = _Keys(rows, texts, len(set(texts)) == len(texts))
        return known, values

    def collect_next(self) -> None:
        """Read the pages of the next scrape, whatever the age of the last reading."""
        self._due = -math.inf

    def take(self) -> SeriesReading | None:
        """Return the newest reading, once."""
        reading, self._reading = self._reading, None
        return reading


def _all_possible(values: Sequence[float]) -> bool:
    """Whether no value is NaN or beyond LARGEST_VALUE."""
    within = not values or (min(values) >= -LARGEST_VALUE and max(values) <= LARGEST_VALUE)
    return within and not math.isnan(sum(values))  # NaN may be passed over by min and max, never by the sum


def _key(name: str, kept: Sequence[str], row: PrometheusSample) -> str:
    labels = row.labels if kept else {}
    return _with_pairs(name, [(label, labels[label]) for label in kept if label in labels])


def _with_pairs(name: str, pairs: Sequence[tuple[str, str]]) -> str:
    text = ",".join(f"{label}={_plain(value)}" for label, value in pairs)
    return f"{name}{{{text}}}" if text else name


@functools.lru_cache(4096)
def _plain(value: str) -> str:
    return "".join(char if char.isprintable() else "_" for char in value.translate(_UNSAFE)[:_LONGEST_LABEL])


class ReplicaReadings:
    """Merges the readings of several servers: each series gets a label with the number of its server."""

    def __init__(self) -> None:
        self._newest: dict[int, SeriesReading] = {}
        self._taken_at = self._due = -math.inf

    def take_next(self) -> None:
        """Let the next `take` return a new reading, whatever the age of the last one."""
        self._due = -math.inf

    def add(self, replica: int, reading: SeriesReading | None) -> None:
        """Add the newest reading of a server; None: it has no new one, so its last one remains."""
        if reading is not None:
            self._newest[replica] = reading

    def take(self) -> SeriesReading | None:
        """Return the series of all servers if one has a new reading, once per SERIES_PERIOD."""
        at = max((reading.at for reading in self._newest.values()), default=-math.inf)
        if at <= self._taken_at or at < self._due - _EARLY:
            return None
        self._taken_at, self._due = at, at + SERIES_PERIOD
        values = {
            _with_label(name, f"{REPLICA}={number}"): value
            for number, reading in sorted(self._newest.items())
            for name, value in reading.values.items()
        }
        return SeriesReading(at, dict(list(values.items())[:MAX_SERIES]))


def _with_label(name: str, label: str) -> str:
    return f"{name.removesuffix('}')},{label}}}" if name.endswith("}") else f"{name}{{{label}}}"


class SeriesPacker:
    """Packs readings for the recording; the names are repeated only when they change, or every NAMES_PERIOD."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._named_at = -math.inf

    def pack(self, reading: SeriesReading) -> SeriesScrape:
        """Return the next scrape to record."""
        names = tuple(reading.values)
        unchanged = names == self._names and reading.at < self._named_at + NAMES_PERIOD
        if not unchanged:
            self._names, self._named_at = names, reading.at
        return SeriesScrape(
            at=reading.at,
            names=None if unchanged else "\n".join(names),
            numbers=pack_numbers(reading.values.values()),
        )
