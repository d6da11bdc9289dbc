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
from servetop.engines.metrics.prometheus_text import scan

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
        self._counters: dict[str, float] = {}
        self._reading: SeriesReading | None = None

    def collect(self, pages: Pages, *, at: float) -> None:
        """Read the pages of a scrape that ended at `at`, if a reading is due, as it is every SERIES_PERIOD.

        A late response leaves the next reading due when it was, or a scrape once a second would be left out after it.
        """
        if at < self._due - _EARLY:
            return
        self._due = (self._due if at - self._due < SERIES_PERIOD / 2 else at) + SERIES_PERIOD
        found: dict[str, float] = {}
        for page in pages.values():
            text = page.decode("utf-8", errors="replace")
            for series, adapter, value in lora_rows(text, self._wanted):
                found[_key(series, (ADAPTER,) if adapter else (), {ADAPTER: adapter})] = value
            for name, rows in scan(text, self._wanted).items():
                for row in rows:
                    if abs(row.value) <= LARGEST_VALUE:  # False for NaN
                        key = _key(name, kept, row.labels) if (kept := self._wanted[name]) else name
                        found[key] = found.get(key, 0.0) + row.value
        values = dict(list((found | (self._counters | found)).items())[:MAX_SERIES])
        self._counters = {key: value for key, value in values.items() if key.partition("{")[0] not in self._gauges}
        self._reading = SeriesReading(at, values) if values else None

    def collect_next(self) -> None:
        """Read the pages of the next scrape, whatever the age of the last reading."""
        self._due = -math.inf

    def take(self) -> SeriesReading | None:
        """Return the newest reading, once."""
        reading, self._reading = self._reading, None
        return reading


def _key(name: str, kept: Sequence[str], labels: Mapping[str, str]) -> str:
    pairs = [f"{label}={_plain(labels[label])}" for label in kept if label in labels]
    return f"{name}{{{','.join(pairs)}}}" if pairs else name


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
