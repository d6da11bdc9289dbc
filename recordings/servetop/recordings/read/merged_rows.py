"""Reads a row that stands for several as the events that it stands for, or as one that knows how many they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from servetop.core.events import EngineSample, GpuSample, ReplicaSample
from servetop.core.interfaces.series_scrape import MergedScrape, SeriesScrape
from servetop.core.merged.merged_sample import MERGED_SECONDS, MergedSample
from servetop.core.merged.tick_rows import MergedTick, TickRow
from servetop.core.tick import Tick
from servetop.recordings.format.merged_codec import MERGED, PEAKS
from servetop.recordings.format.row_codec import RowValues

_SCRAPE_FIELDS = dataclasses.fields(SeriesScrape)
_ADJACENT = 1.5 * MERGED_SECONDS
"""Seconds since the row before up to which values rise from it."""


class MergedRows:
    """Reads the rows of one table in the order of time; `before` finds the event before row `seq` with its key."""

    def __init__(self, names: Sequence[str], before: Callable[[int, Hashable], Any]) -> None:
        """`names` are those of the first values of a row, among them `merged`."""
        self._before = before
        self._merged = names.index(MERGED) if MERGED in names else None
        self._places = {name: names.index(name) for name in ("seq", MERGED, *PEAKS.values()) if name in names}
        self._last: dict[Hashable, Any] = {}

    def read(self, row: tuple[Any, ...], event: Any, *, stored: bool) -> Iterable[Any]:
        """Return what a row stands for, with its own event: a `MergedTick`, a `MergedScrape`, or samples.

        A row of several samples is one `MergedSample` if it is `stored`, or of one of several servers.
        """
        count = 1 if self._merged is None else row[self._merged] or 1
        if count == 1:
            self._last[key_of(event)] = event
            return (event,)
        values = {name: row[place] for name, place in self._places.items()}
        found = self._stored(values, event, count)
        if stored or isinstance(event, ReplicaSample):
            return (found,)
        if isinstance(found, MergedSample):
            return found.samples()
        return _readings(event, count) if isinstance(event, GpuSample) else (found,)

    def _stored(self, row: RowValues, event: Any, count: int) -> Any:
        key, found = key_of(event), event
        if isinstance(event, SeriesScrape):
            found = MergedScrape(**{each.name: getattr(event, each.name) for each in _SCRAPE_FIELDS}, count=count)
        elif isinstance(event, (Tick, EngineSample)):
            last = self._last.get(key)
            last = self._before(row["seq"], key) if last is None else last
            found = _tick(event, last, row) if isinstance(event, Tick) else _sample(event, last, row)
        self._last[key] = event
        return found


def key_of(event: Any) -> Hashable:
    """Return what tells apart the servers or devices whose events are in one table; None for all others."""
    return event.index if isinstance(event, GpuSample) else getattr(event, "replica", None)


def _tick(tick: Tick, last: Tick | None, row: RowValues) -> TickRow:
    count = row[MERGED]
    before = last.engine if last is not None and tick.index - last.index == count else None
    engine = None if tick.engine is None else _merged(tick.engine, before, row)
    return MergedTick(tick=tick, count=count, engine=engine)


def _sample(sample: EngineSample, last: EngineSample | None, row: RowValues) -> MergedSample:
    adjacent = last is not None and sample.scrape_end - last.scrape_end < _ADJACENT
    return _merged(sample, last if adjacent else None, row)


def _merged(sample: EngineSample, before: EngineSample | None, row: RowValues) -> MergedSample:
    peaks = {
        name: peak
        for name, column in PEAKS.items()
        if getattr(sample, name) is not None and (peak := row.get(column)) is not None
    }
    return MergedSample(sample=sample, count=row[MERGED], before=before, peaks=peaks)


def _readings(sample: GpuSample, count: int) -> Iterator[GpuSample]:
    for number in range(1, count + 1):
        yield dataclasses.replace(sample, at=sample.at - MERGED_SECONDS * (count - number) / count)
