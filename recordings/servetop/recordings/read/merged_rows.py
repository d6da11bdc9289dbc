"""Reads a row that stands for several as that many events, so that whatever reads them knows one length of a tick.

Counters and times rise evenly from the row before. A gauge has its maximum once, in the middle, and otherwise the value
with which its mean is the recorded one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from servetop.core.arrays import np
from servetop.core.events import EngineSample, GpuSample
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers, unpack_all
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.format.merged_codec import MERGED, MERGED_SECONDS, PEAKS
from servetop.recordings.format.row_codec import RowValues

_ADJACENT = 1.5 * MERGED_SECONDS
"""Seconds since the row before up to which values rise from it."""
_RISING = (
    "scrape_start",
    "scrape_end",
    *(
        each.name
        for each in dataclasses.fields(EngineSample)
        if each.name.endswith("_total") and each.name != "kv_blocks_total"
    ),
)
_SECONDS = frozenset(name for name in _RISING if not name.endswith("_total") or "_seconds_" in name)
_FLOATS = "<f8"


class MergedRows:
    """Expands the rows of one table in the order of time; `before` finds the event before row `seq` with its key."""

    def __init__(self, before: Callable[[int, Hashable], Any]) -> None:
        self._before = before
        self._last: dict[Hashable, Any] = {}
        self._names: dict[Hashable, str] = {}

    def events(self, row: RowValues, event: Any) -> Iterator[Any]:
        """Yield the events that a row stands for; `event` is that of the row itself."""
        key = key_of(event)
        count = row.get(MERGED) or 1
        if count > 1:
            last = self._last.get(key)
            yield from self._expanded(row, event, self._before(row["seq"], key) if last is None else last)
        else:
            yield event
        self._last[key] = event
        if isinstance(event, SeriesScrape) and event.names is not None:
            self._names[key] = event.names

    def _expanded(self, row: RowValues, event: Any, last: Any) -> Sequence[Any]:
        count = row[MERGED]
        match event:
            case Tick():
                return _ticks(event, last if last and event.index - last.index == count else None, row)
            case EngineSample():
                adjacent = last is not None and event.scrape_end - last.scrape_end < _ADJACENT
                return samples_between(last if adjacent else None, event, row)
            case SeriesScrape():
                same = event.names is None or event.names == self._names.get(key_of(event))
                return _scrapes(last if last and event.at - last.at < _ADJACENT else None, event, count, same=same)
            case GpuSample():
                return [dataclasses.replace(event, at=at) for at in _times(None, event.at, count)]
        raise ValueError(f"{MERGED} is {count}")


def key_of(event: Any) -> Hashable:
    """Return what tells apart the servers or devices whose events are in one table; None for all others."""
    return event.index if isinstance(event, GpuSample) else getattr(event, "replica", None)


def samples_between(last: EngineSample | None, sample: EngineSample, row: RowValues) -> list[EngineSample]:
    """Return the samples that `sample` stands for; its counters are held if the sample before is unknown or higher."""
    count = row[MERGED]
    fields = {each.name: getattr(sample, each.name) for each in dataclasses.fields(sample)}
    steps = _steps(last, fields) if last is not None else {}
    peaks = {}
    for name, column in PEAKS.items():
        mean, peak = fields[name], row.get(column)
        if mean is not None and peak is not None:
            peaks[name] = peak
            fields[name] = min(max((mean * count - peak) / (count - 1), 0.0), peak)
    times = _times(None, sample.scrape_end, count)
    found = []
    for number in range(1, count + 1):
        rest = 1 - number / count
        changed = {name: fields[name] - _rest(name, step * rest) for name, step in steps.items()}
        if last is None:
            before_end = sample.scrape_end - times[number - 1]
            changed = {name: fields[name] - before_end for name in ("scrape_start", "scrape_end")}
        if number == (count + 1) // 2:
            changed |= peaks
        found.append(type(sample)(**(fields | changed)))
    return found


def _rest(name: str, rest: float) -> float:
    """Return what a counter still lacks: a whole number where it counts, so that a rare event remains one event."""
    return rest if name in _SECONDS else float(math.ceil(rest - 1e-9))


def _steps(last: EngineSample, fields: dict[str, Any]) -> dict[str, float]:
    """Return how much each rising field increased since the sample before; none that is unknown or fell."""
    steps = {}
    for name in _RISING:
        before, value = getattr(last, name), fields[name]
        if before is not None and value is not None and value > before:
            steps[name] = value - before
    return steps


def _times(begin: float | None, end: float, count: int) -> list[float]:
    """Return `count` times up to `end`, evenly since `begin`, or over the time of a merged row."""
    span = MERGED_SECONDS if begin is None else end - begin
    return [end - span * (count - number) / count for number in range(1, count + 1)]


def _ticks(tick: Tick, last: Tick | None, row: RowValues) -> list[Tick]:
    count = row[MERGED]
    engines: Sequence[EngineSample | None] = [None] * count
    if tick.engine is not None:
        before = last.engine if last is not None else None
        engines = samples_between(before, tick.engine, row)
    return [
        Tick(
            client=ClientTick(index=tick.index - count + number, gauges=tick.client.gauges),
            engine=engine,
            gpus=tick.gpus,
        )
        for number, engine in enumerate(engines, start=1)
    ]


def _scrapes(last: SeriesScrape | None, scrape: SeriesScrape, count: int, *, same: bool) -> list[SeriesScrape]:
    """Return the scrapes that one stands for; a series that fell, or has no value before, is held."""
    begin = None if last is None else last.at
    steps = _increases(last, scrape) if last is not None and same else None
    found = []
    for number, at in enumerate(_times(begin, scrape.at, count), start=1):
        packed = scrape.numbers
        if steps is not None and number < count:
            packed = pack_numbers((steps[0] - steps[1] * (1 - number / count)).tolist())
        names = scrape.names if number == 1 else None
        found.append(dataclasses.replace(scrape, at=at, names=names, numbers=packed))
    return found


def _increases(last: SeriesScrape, scrape: SeriesScrape) -> tuple[Any, Any] | None:
    """Return the numbers of a scrape and how much each increased; None if they are not of the same series."""
    before, now = _numbers(last), _numbers(scrape)
    if before is None or now is None or before.size != now.size:
        return None
    return now, np.nan_to_num(np.maximum(now - before, 0.0), nan=0.0, posinf=0.0)


def _numbers(scrape: SeriesScrape) -> Any:
    packed = unpack_all(scrape.numbers)
    return None if packed is None else np.frombuffer(packed, _FLOATS)
