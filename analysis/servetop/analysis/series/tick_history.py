"""The ticks of a run in order, with the columns that charts draw from; append-only."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from operator import attrgetter

from servetop.analysis.series.paged_columns import PagedColumns
from servetop.analysis.series.scratch import Scratch
from servetop.analysis.series.tick_cache import BLOCK, ReadTicks, TickCache
from servetop.analysis.series.window_cache import SLIDING, WINDOW, Percentiles, WindowCache
from servetop.core.arrays import FloatArray
from servetop.core.bounds import bounded
from servetop.core.events import EngineSample
from servetop.core.histogram import LogHistogram
from servetop.core.tick import TICK_SECONDS, LoadGauges, Tick

CLIENT_COLUMNS = (
    "due", "sent", "ok", "failed", "cancelled", "prompt_tokens", "output_tokens", "chunks", "stamped", "cpu_seconds",
)  # fmt: skip
"""Counts per tick; they add up over time."""
GAUGE_COLUMNS = (
    "in_flight", "queued", "stage", "request_rate", "max_concurrency", "paused",
    "running", "waiting", "kv_usage", "kv_blocks_used", "scrape_end",
)  # fmt: skip
"""States at the end of a tick; NaN where unknown."""
ENGINE_DELTA_COLUMNS = {
    "preemptions": "preemptions_total",
    "engine_output_tokens": "generation_tokens_total",
    "engine_prompt_tokens": "prompt_tokens_total",
    "engine_first_token_seconds": "first_token_seconds_total",
    "engine_first_tokens": "first_tokens_total",
    "engine_queue_seconds": "queue_seconds_total",
    "engine_queued": "queued_requests_total",
    "engine_prefill_seconds": "prefill_seconds_total",
    "engine_prefilled": "prefilled_requests_total",
    "prefix_cache_hits": "prefix_cache_hits_total",
    "prefix_cache_queries": "prefix_cache_queries_total",
}
"""Columns with the increase of an engine's counter within a tick, by counter; NaN where not exported."""

_OF_CLIENT = {name: attrgetter(name) for name in CLIENT_COLUMNS}
_OF_GAUGES = {name: attrgetter(f"gauges.{name}") for name in GAUGE_COLUMNS if name in LoadGauges.__slots__}
_OF_ENGINE = {name: attrgetter(name) for name in GAUGE_COLUMNS if name not in _OF_GAUGES}
_CACHED_PERCENTILES = 1_000
_FEW_BLOCKS = 16
"""Blocks whose percentiles are computed on eviction; of more, as when a long recording is opened, on demand."""


class TickHistory:
    """All ticks up to now; every column has one entry per tick."""

    def __init__(
        self, ticks: Iterable[Tick] = (), *, read: ReadTicks | None = None, scratch: Scratch | None = None
    ) -> None:
        """`read` returns evicted ticks again; their most requested figures are kept in `scratch`."""
        self.ticks = TickCache(read)
        scratch = Scratch() if scratch is None else scratch
        self._old = WindowCache(scratch)
        self._columns = PagedColumns((*CLIENT_COLUMNS, *GAUGE_COLUMNS, *ENGINE_DELTA_COLUMNS), scratch)
        self._last_counters: dict[str, float] = {}
        self._percentiles: dict[tuple[str, int, int], tuple[float, float, float]] = {}
        self.extend(list(ticks))

    def append(self, tick: Tick) -> None:
        """Add the next tick; it must lie after all others."""
        self.extend([tick])

    def extend(self, ticks: Sequence[Tick]) -> None:
        """Add the next ticks, in order; column by column, so that an hour loads fast."""
        if not ticks:
            return
        self.ticks.extend(ticks)
        clients = [tick.client for tick in ticks]
        samples = [tick.engine for tick in ticks]
        for name, read in _OF_CLIENT.items():
            self._columns.extend(name, map(read, clients))
        for name, read in _OF_GAUGES.items():
            self._columns.extend(name, map(_number, map(read, clients)))
        for name, read in _OF_ENGINE.items():
            self._columns.extend(name, [math.nan if each is None else bounded(read(each)) for each in samples])
        for name, counter in ENGINE_DELTA_COLUMNS.items():
            self._columns.extend(name, self._increases(counter, samples))

    def _increases(self, counter: str, samples: Sequence[EngineSample | None]) -> list[float]:
        read, before, increases = attrgetter(counter), self._last_counters.get(counter), []
        for sample in samples:
            value = math.nan if sample is None else bounded(read(sample))
            if math.isnan(value):
                increases.append(value)
                continue
            least = value if before is None else before
            increases.append(value - least if value >= least else value)  # a smaller value: the engine was restarted
            before = value
        if before is not None:
            self._last_counters[counter] = before
        return increases

    def forget(self, count: int) -> None:
        """Drop the first `count` ticks; positions move down by `count`, and `total` still counts them."""
        self._columns.forget(count)
        self.ticks.drop(count)
        self._percentiles.clear()

    def put_away(self, *, keep: int) -> None:
        """Evict all but about the newest `keep` ticks; they are read again on demand.

        No result changes.
        """
        before, stop = self.ticks.away, self.ticks.may_leave(keep=keep)
        few = stop - before <= _FEW_BLOCKS * BLOCK
        for first in range(before, stop, BLOCK):
            starts = range(first, first + BLOCK) if few else ()
            sliding = [{name: self._worked_out(name, each, each + WINDOW) for name in SLIDING} for each in starts]
            self._old.add(self.ticks[first : first + BLOCK], sliding)
        self.ticks.put_away(stop)
        if stop:
            self._columns.put_away()

    def total(self, name: str, *, stop: int) -> float:
        """A column's sum from the run's start to tick `stop`; NaN if no tick had a value."""
        return self._columns.total(name, stop=stop)

    def last_known(self, name: str, *, stop: int) -> int | None:
        """Position of the last tick before `stop` with a value in a column."""
        return self._columns.last_known(name, stop=stop)

    def __len__(self) -> int:
        return len(self.ticks)

    def up_to(self, at: float) -> int:
        """Number of ticks that had ended by `at` (seconds)."""
        return bisect.bisect_right(self.ticks.indexes, (at + 1e-9) / TICK_SECONDS - 1)

    def first_from(self, at: float) -> int:
        """Position of the first tick that starts at or after `at`."""
        return bisect.bisect_left(self.ticks.indexes, (at - 1e-9) / TICK_SECONDS)

    def column(self, name: str, *, start: int = 0, stop: int | None = None) -> FloatArray:
        """A column's entries for ticks `start` to `stop`; shape (stop - start,)."""
        return self._columns.column(name, start=start, stop=stop)

    def value(self, name: str, position: int) -> float:
        """One entry of a column."""
        return self._columns.value(name, position)

    def histogram(self, name: str, *, start: int, stop: int) -> LogHistogram:
        """The sum of one of the ticks' histograms over ticks `start` to `stop`."""
        return self._old.histogram(name, start, stop, ticks=lambda low, high: self.ticks[low:high])

    def percentiles(self, name: str, *, start: int, stop: int) -> Percentiles:
        """p50, p90 and p99 in seconds over ticks `start` to `stop`; NaN when nothing was measured."""
        key = (name, start, stop)
        found = self._percentiles.pop(key, None) or self._old.percentiles(name, start, stop)
        found = found or self._worked_out(name, start, stop)
        if len(self._percentiles) >= _CACHED_PERCENTILES:
            del self._percentiles[next(iter(self._percentiles))]  # the least recently used
        self._percentiles[key] = found
        return found

    def _worked_out(self, name: str, start: int, stop: int) -> Percentiles:
        merged = self.histogram(name, start=start, stop=stop)
        return merged.percentile(50), merged.percentile(90), merged.percentile(99)

    def bins(self, first_at: float, *, until: float, width: int) -> Sequence[tuple[int, int]]:
        """Positions [start, stop) of groups of `width` ticks, aligned to multiples of `width` so that charts do not
        shimmer over time; a group that is incomplete at `until` is left out."""
        low = math.ceil(first_at / TICK_SECONDS / width - 1e-9) * width
        high = math.floor(until / TICK_SECONDS / width + 1e-9) * width
        edges = [self.first_from(index * TICK_SECONDS) for index in range(low, high + 1, width)]
        return list(itertools.pairwise(edges))


def _number(value: float | int | None) -> float:
    return math.nan if value is None else float(value)
