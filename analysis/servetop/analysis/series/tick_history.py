"""The ticks of a run in order, with the columns of charts; append-only."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter

from servetop.analysis.series.client_columns import (
    COUNT_GETTERS,
    LOAD_COLUMNS,
    OBJECTIVE_COLUMNS,
    VALUE_GETTERS,
    ClientColumns,
    append_entries,
    number,
)
from servetop.analysis.series.paged_columns import PagedColumns
from servetop.analysis.series.scratch import Scratch
from servetop.analysis.series.sliding_percentiles import Percentiles, sliding_percentiles
from servetop.analysis.series.tick_cache import BLOCK, ReadTicks, TickCache
from servetop.analysis.series.tick_columns import TickColumns
from servetop.analysis.series.window_cache import WindowCache, charted_percentiles
from servetop.core.arrays import FloatArray, np
from servetop.core.bounds import bounded, bounds_of
from servetop.core.events import EngineSample
from servetop.core.histogram import LogHistogram
from servetop.core.merged.row_columns import RowColumns
from servetop.core.merged.tick_rows import TickRows, last_tick
from servetop.core.tick import TICK_SECONDS, ClientTick, Tick

_ENGINE_GAUGES = (
    "running",
    "waiting",
    "kv_usage",
    "kv_blocks_used",
    "max_num_seqs",
    "kv_blocks_total",
    "scrape_end",
)
GAUGE_COLUMNS = (*LOAD_COLUMNS, *_ENGINE_GAUGES)
"""Values at the end of a tick; NaN if unknown."""
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
    "engine_ended": "requests_ended_total",
    "engine_failed": "requests_failed_total",
}
"""Engine counter by the column of its increase within a tick; NaN if not exported."""

_ENGINE_GETTERS = {name: attrgetter(name) for name in _ENGINE_GAUGES}
_COLUMNS = (*COUNT_GETTERS, *OBJECTIVE_COLUMNS, *GAUGE_COLUMNS, "throttled", *ENGINE_DELTA_COLUMNS)
_CACHED_PERCENTILES = 2_000
_MAX_EAGER_BLOCKS = 16
"""If at most this many blocks are evicted at once, their percentiles are computed then, otherwise on demand."""


class TickHistory:
    """All ticks so far; every column has one entry per tick."""

    watched = False
    """Whether rates of the engine's counters are those between its metrics pages, as of a server that is watched."""

    def __init__(
        self, ticks: Iterable[Tick] = (), *, read: ReadTicks | None = None, scratch: Scratch | None = None
    ) -> None:
        """Use `read` to read evicted ticks again; their sums and charted percentiles are kept in `scratch`."""
        self.ticks = TickCache(read)
        scratch = Scratch() if scratch is None else scratch
        self._old = WindowCache(scratch)
        self._columns = PagedColumns(_COLUMNS, scratch)
        self._last_counters: dict[str, float] = {}
        self._percentiles: dict[tuple[str, int, int], tuple[float, float, float]] = {}
        self.extend(ticks if isinstance(ticks, TickRows) else list(ticks))

    def append(self, tick: Tick) -> None:
        """Append the next tick; it must be later than all others."""
        self.extend([tick])

    def extend(self, ticks: Sequence[Tick], *, clients: ClientColumns | None = None) -> None:
        """Append the next ticks, in order, column by column for speed; `clients` are their columns, if known."""
        if not ticks:
            return
        if isinstance(ticks, TickRows) and ticks.merged:
            self.extend_rows(ticks, RowColumns(ticks.rows))
            return
        self.ticks.extend(ticks)
        (clients or ClientColumns.of([tick.client for tick in ticks])).append_to(self._columns)
        repeated = [list(same) for _, same in itertools.groupby((tick.engine for tick in ticks), key=id)]
        samples = [(same[0], len(same)) for same in repeated]
        for name, read in _ENGINE_GETTERS.items():
            bound = bounds_of(name)
            values = ([bound(None if each is None else read(each))] * count for each, count in samples)
            append_entries(self._columns, name, itertools.chain.from_iterable(values))
        append_entries(self._columns, "throttled", map(_is_throttled, ticks))
        for name, counter in ENGINE_DELTA_COLUMNS.items():
            append_entries(self._columns, name, self._increases(counter, samples))

    def extend_rows(self, ticks: TickRows, rows: RowColumns) -> None:
        """Append the ticks of rows of which some stand for many, without making them; `rows` are their columns."""
        self.ticks.extend(ticks)
        for name, read in COUNT_GETTERS.items():
            self._columns.extend_array(name, rows.client(read))
        for name, read in VALUE_GETTERS.items():
            self._columns.extend_array(name, rows.client(_known(read)))
        for name in _ENGINE_GETTERS:
            self._columns.extend_array(name, rows.engine(name))
        self._columns.extend_array("throttled", rows.row_values(lambda row: _is_throttled(last_tick(row))))
        for name, counter in ENGINE_DELTA_COLUMNS.items():
            self._columns.extend_array(name, self._increases_of(counter, rows.engine(counter)))

    def _increases_of(self, counter: str, values: FloatArray) -> FloatArray:
        """Return what `_increases` does of a column."""
        if not (known := ~np.isnan(values)).any():
            return values
        found, present = values.copy(), values[known]
        before = np.concatenate([[self._last_counters.get(counter, present[0])], present[:-1]])
        found[known] = np.where(present >= before, present - before, present)
        self._last_counters[counter] = float(present[-1])
        return found

    def _increases(self, counter: str, samples: Sequence[tuple[EngineSample | None, int]]) -> list[float]:
        """Return what a counter grew by in each tick, with the number of ticks in a row that have each sample."""
        read, before, increases = attrgetter(counter), self._last_counters.get(counter), list[float]()
        for sample, count in samples:
            value = math.nan if sample is None else bounded(read(sample))
            if math.isnan(value):
                increases += [math.nan] * count
                continue
            base = value if before is None else before
            grown = value - base if value >= base else value  # a smaller value: the engine was restarted
            increases += [grown, *[0.0] * (count - 1)]
            before = value
        if before is not None:
            self._last_counters[counter] = before
        return increases

    def drop_first(self, count: int) -> None:
        """Drop the first `count` ticks: positions decrease by `count`, and `total` still includes them."""
        self._columns.drop_first(count)
        self.ticks.drop(count)
        self._percentiles.clear()

    def evict(self, *, keep: int) -> None:
        """Evict all except about the newest `keep` ticks, which are read again on demand; no result changes."""
        before, stop = self.ticks.evicted, self.ticks.evictable_before(keep=keep)
        eager = stop - before <= _MAX_EAGER_BLOCKS * BLOCK
        for first in range(before, stop, BLOCK):
            self._old.add(
                self.ticks[first : first + BLOCK], charted_percentiles(first, self._histograms) if eager else ()
            )
        self.ticks.evict(stop)
        if stop:
            self._columns.evict()

    def total(self, name: str, *, stop: int) -> float:
        """Return a column's sum from the run's start to tick `stop`; NaN if no tick has a value."""
        return self._columns.total(name, stop=stop)

    def last_known(self, name: str, *, stop: int) -> int | None:
        """Return the position of the last tick before `stop` with a value in a column; None if there is none."""
        return self._columns.last_known(name, stop=stop)

    def __len__(self) -> int:
        return len(self.ticks)

    def end_of(self, position: int) -> float:
        """Return the end of a tick in seconds, without reading it."""
        return (self.ticks.indexes[position] + 1) * TICK_SECONDS

    def up_to(self, at: float) -> int:
        """Return the number of ticks that had ended by `at` (seconds)."""
        return bisect.bisect_right(self.ticks.indexes, (at + 1e-9) / TICK_SECONDS - 1)

    def first_from(self, at: float) -> int:
        """Return the position of the first tick that starts at or after `at` (seconds)."""
        return bisect.bisect_left(self.ticks.indexes, (at - 1e-9) / TICK_SECONDS)

    def column(self, name: str, *, start: int = 0, stop: int | None = None) -> FloatArray:
        """Return a column's entries for ticks `start` to `stop`; shape (stop - start,)."""
        return self._columns.column(name, start=start, stop=stop)

    def stage_columns(self, first: int, stop: int) -> TickColumns:
        """Return what `TickColumns.of` would of ticks `first` to `stop`, which may no longer be in memory."""
        stop = max(first, stop)

        def column(name: str) -> FloatArray:
            return self.column(name, start=first, stop=stop)

        return TickColumns(
            start=np.array(self.ticks.indexes[first:stop], dtype=np.float64) * TICK_SECONDS,
            in_system=column("in_flight") + column("queued"),
            output_tokens=column("output_tokens"),
            completed=column("ok") + column("failed") + column("cancelled"),
            due=column("due"),
            request_rate=column("request_rate"),
            max_concurrency=column("max_concurrency"),
            paused=column("paused") > 0,
        )

    def value(self, name: str, position: int) -> float:
        """Return one entry of a column."""
        return self._columns.value(name, position)

    def histogram(self, name: str, *, start: int, stop: int) -> LogHistogram:
        """Return the sum of the histograms of this name over ticks `start` to `stop`."""
        kept = self.ticks.kept
        if start >= kept:
            return self._old.histogram(
                name, start - kept, stop - kept, ticks=lambda low, high: self.ticks[low + kept : high + kept]
            )
        early = self._histograms(name, start, min(stop, kept))
        return LogHistogram.merged([*early, self.histogram(name, start=kept, stop=stop)] if stop > kept else early)

    def percentiles(self, name: str, *, start: int, stop: int) -> Percentiles:
        """Return p50, p90 and p99 in seconds over ticks `start` to `stop`; NaN if nothing was measured."""
        return self.sliding_percentiles(name, [(start, stop)])[0]

    def sliding_percentiles(self, name: str, windows: Sequence[tuple[int, int]]) -> list[Percentiles]:
        """Return `percentiles` of several windows, start to stop, at once: most of their ticks may be in several."""
        found = {window: known for window in windows if (known := self._percentiles.pop((name, *window), None))}
        missing = [window for window in dict.fromkeys(windows) if window not in found]
        found.update(zip(missing, self._compute_percentiles(name, missing), strict=True))
        for window, percentiles in found.items():
            if len(self._percentiles) >= _CACHED_PERCENTILES:
                del self._percentiles[next(iter(self._percentiles))]  # the least recently used
            self._percentiles[name, *window] = percentiles
        return [found[window] for window in windows]

    def _compute_percentiles(self, name: str, windows: Sequence[tuple[int, int]]) -> list[Percentiles]:
        kept, evicted = self.ticks.kept, self.ticks.evicted
        in_memory = [window for window in windows if window[0] >= evicted or window[1] <= kept]
        found = dict(zip(in_memory, sliding_percentiles(in_memory, partial(self._histograms, name)), strict=True))
        return [found.get(window) or self._evicted_percentiles(name, *window) for window in windows]

    def _histograms(self, name: str, start: int, stop: int) -> list[LogHistogram]:
        return [getattr(tick.client, name) for tick in self.ticks.measured(start, stop)]

    def _evicted_percentiles(self, name: str, start: int, stop: int) -> Percentiles:
        kept = self.ticks.kept
        known = self._old.percentiles(name, start - kept, stop - kept) if start >= kept else None
        if known is not None:
            return known
        p50, p90, p99 = self.histogram(name, start=start, stop=stop).percentiles(50, 90, 99)
        return p50, p90, p99

    def bins(self, first_at: float, *, until: float, width: int) -> Sequence[tuple[int, int]]:
        """Return the positions [start, stop) of groups of `width` ticks, without an incomplete group at `until`.

        The groups are aligned to multiples of `width`, so that the bins of a scrolling chart do not change.
        """
        low = math.ceil(first_at / TICK_SECONDS / width - 1e-9) * width
        high = math.floor(until / TICK_SECONDS / width + 1e-9) * width
        return list(itertools.pairwise(self.first_from(index * TICK_SECONDS) for index in range(low, high + 1, width)))


def _known(read: Callable[[ClientTick], float | None]) -> Callable[[ClientTick], float]:
    """Return what `read` returns; NaN for None."""
    return lambda client: number(read(client))


def _is_throttled(tick: Tick) -> float:
    """Whether the clocks of a GPU were throttled, as 0 or 1."""
    return float(any(gpu.throttled for gpu in tick.gpus))
