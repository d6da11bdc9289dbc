"""What a watched server's counters grew by per second: the difference of two metrics pages by the time between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import BoolArray, FloatArray, IntArray
from servetop.core.tick import TICK_SECONDS

LOOKBACK = 300.0
"""Seconds before a tick in which pages are searched."""
LONGEST_UNREAD = 3.0
"""Seconds without a reading from which a watched server is unknown, however old its samples are by themselves."""
RARE = 5.0
"""Seconds between samples from which a source is said to have them rarely, such as a Prometheus server."""
LONGEST_INTERVAL = 120.0
"""Seconds between samples at most; also the age up to which the only sample counts, as its interval is not known."""
_LEAST_AGE = 1.5
"""Seconds for which a sample counts at least: `engine_gauges.STALE_AFTER`."""
_ROUNDING = 1e-9
_LOOKBACK_TICKS = round(LOOKBACK / TICK_SECONDS)


def watched_stale_after(intervals: FloatArray | float) -> FloatArray:
    """Return the age from which a sample of a watched server is outdated, in seconds: one may be late, or missing.

    `intervals` are the seconds between the samples before; 0 where there is only one.
    """
    known = np.minimum(intervals, LONGEST_INTERVAL)
    late = np.minimum(3 * known, np.maximum(2 * known, known + 2))
    return np.asarray(np.where(known > 0, np.maximum(late, _LEAST_AGE), LONGEST_INTERVAL))


class WatchedHistory(TickHistory):
    """The ticks of a watched server, whose counters are read from its metrics pages."""

    watched = True
    newest_pages: tuple[tuple[int, int, int], Pages] | None = None
    """What `Pages.of` returned last, after the first and the last tick that it is of and the number of all ticks."""

    def drop_first(self, count: int) -> None:
        """Drop the first ticks, as `TickHistory` does."""
        self.newest_pages = None
        super().drop_first(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSpan:
    """The ticks between two metrics pages, and the seconds from one to the other."""

    start: int
    """The first tick after that in which the earlier page arrived."""
    stop: int
    """The tick after that in which the later page arrived."""
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Pages:
    """The metrics pages in the ticks up to one, and in some time before them."""

    first: int
    """The position of the first of these ticks."""
    at: FloatArray
    """The end of each tick, seconds."""
    ends: FloatArray
    """When the page of each tick was written, seconds; NaN in ticks without one."""
    places: IntArray
    """The ticks in which a page arrived, relative to the first; the others repeat it, or have none."""
    read: IntArray
    """The newest tick up to each that has a page; -1 before the first."""

    @classmethod
    def of(cls, history: TickHistory, *, start: int, stop: int) -> Pages:
        """Return the pages of ticks `start` to `stop`, and of LOOKBACK before them."""
        if not isinstance(history, WatchedHistory):
            return cls._read(history, start, stop)
        ticks = start, stop, len(history)
        if history.newest_pages is None or history.newest_pages[0] != ticks:
            history.newest_pages = ticks, cls._read(history, start, stop)
        return history.newest_pages[1]

    @classmethod
    def _read(cls, history: TickHistory, start: int, stop: int) -> Pages:
        first = max(start - _LOOKBACK_TICKS, 0)
        at = (np.array(history.ticks.indexes[first:stop], dtype=np.float64) + 1) * TICK_SECONDS
        ends = history.column("scrape_end", start=first, stop=stop)
        position = np.arange(ends.size)
        read = np.maximum.accumulate(np.where(np.isnan(ends), -1, position))
        before = np.concatenate([[-1], read[:-1]])[: ends.size]
        new = ~np.isnan(ends) & ((before < 0) | (ends != ends[before]))
        return cls(first=first, at=at, ends=ends, places=np.flatnonzero(new), read=read)

    @cached_property
    def written(self) -> FloatArray:
        """When each page was written, seconds."""
        return self.ends[self.places]

    @cached_property
    def intervals(self) -> FloatArray:
        """The seconds from the page before to each page, or those of the page before if they are less; 0 if unknown.

        Of a server that did not respond for a while, the next page is expected as soon as before.
        """
        gaps = self.written[1:] - self.written[:-1]
        least = np.minimum(gaps, np.concatenate([gaps[:1], gaps[:-1]])) if gaps.size else gaps
        return np.concatenate([np.zeros(min(self.places.size, 1)), least])

    @cached_property
    def current(self) -> BoolArray:
        """Whether the newest page of each tick describes the server then."""
        if not self.places.size:
            return np.zeros(self.ends.size, dtype=np.bool_)
        page = self.page
        limit = watched_stale_after(self.intervals)[page]
        fresh = (self.at - self.written[page] <= limit + _ROUNDING) & (self.read >= 0)
        return np.asarray(fresh & (self.at - self.at[self.read] <= LONGEST_UNREAD + _ROUNDING))

    @cached_property
    def page(self) -> IntArray:
        """The number of the newest page of each tick; 0 also before the first."""
        found = np.searchsorted(self.places, np.arange(self.ends.size), side="right") - 1
        return np.asarray(np.maximum(found, 0))

    def bases(self, window: float) -> IntArray:
        """Return the number of the page that each page is compared with; that of the first is its own.

        It is the oldest one of `window` seconds, or the one before, if that is older.
        """
        written = np.maximum.accumulate(self.written)
        found = np.searchsorted(written, written - window - TICK_SECONDS / 2)
        return np.asarray(np.maximum(np.minimum(found, np.arange(written.size) - 1), 0))


def page_span(history: TickHistory, stop: int, *, window: float) -> PageSpan | None:
    """Return the ticks whose increases are those of the last `window` seconds before tick `stop`.

    None without two pages, and when the newest page does not describe the server any more.
    """
    pages = Pages.of(history, start=max(stop - 1, 0), stop=stop)
    if pages.places.size < 2 or not pages.current[-1]:
        return None
    base = int(pages.bases(window)[-1])
    seconds = float(pages.written[-1] - pages.written[base])
    start, end = pages.first + int(pages.places[base]) + 1, pages.first + int(pages.places[-1]) + 1
    return PageSpan(start=start, stop=end, seconds=seconds) if seconds > 0 else None


def page_rates(history: TickHistory, column: str, *, start: int, stop: int, window: float) -> FloatArray:
    """Return the rate of a counter's column over the last `window` seconds, for each of ticks `start` to `stop`.

    NaN where `page_span` has none.
    """
    pages = Pages.of(history, start=start, stop=stop)
    if not pages.places.size:
        return np.full(stop - start, np.nan)
    counts = history.column(column, start=pages.first, stop=stop)
    totals, base = np.cumsum(np.where(np.isnan(counts), 0.0, counts))[pages.places], pages.bases(window)
    seconds = pages.written - pages.written[base]
    known = (seconds > 0) & ~np.isnan(counts[pages.places])
    rates = np.divide(totals - totals[base], seconds, out=np.full(seconds.size, np.nan), where=known)
    return np.where(pages.current, rates[pages.page], np.nan)[start - pages.first :]


def interval_and_reading(history: TickHistory, stop: int) -> tuple[float, float]:
    """Return the seconds between the newest samples, 0 with fewer than two, and the end of the last tick with one."""
    pages = Pages.of(history, start=max(stop - 1, 0), stop=stop)
    if not pages.places.size:
        return 0.0, math.nan
    return float(pages.intervals[-1]), float(pages.at[pages.read[-1]])
