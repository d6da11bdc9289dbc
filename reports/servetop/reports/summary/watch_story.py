"""What happened to watched servers in a part of a watch: each limit with its figures, and the notes about servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.overload import Overload
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.engine_gauges import kv_usages
from servetop.analysis.summary.watched_figures import named_overloads
from servetop.core.arrays import FloatArray
from servetop.core.text import formats
from servetop.core.text.counted import counted
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.replica_watches import replica_records
from servetop.reports.summary.watch_window import WatchWindow

_NEWS = ("engine", "metrics")
"""Sources of the notes about servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStoryLine:
    """One thing that happened."""

    at: float
    """Seconds since the start of the watch; the start of the window for what began before."""
    time: str
    """The same in local time."""
    server: str | None
    """Its name among several; None for a server that is watched alone, and for a note, whose text has the name."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStory:
    """The limits and events of a window, in order of time."""

    since: str
    """Local time."""
    until: str
    seconds: float
    headline: str
    """How long each server was at which limit."""
    lines: tuple[WatchStoryLine, ...]


def watch_story(reader: RecordingReader, *, since: str | None = None, until: str | None = None) -> WatchStory:
    """Return the story of a recorded watch between two times (`WatchWindow.of`); UsageError if it cannot."""
    record = recorded_run(reader)
    window = WatchWindow.of(since, until, wall_epoch_s=reader.header.anchor.wall_epoch_s, seconds=record.until)
    servers: list[tuple[str | None, RunRecord]] = [(name, each) for name, each, _ in replica_records(reader, record)]
    lines: list[WatchStoryLine] = []
    held: dict[tuple[str | None, str], float] = {}
    for name, each in servers or [(None, record)]:
        for limit, group in _within(each, window):
            lines.append(_line(window, max(group.begin, window.start), name, _text(window, each, limit, group)))
            seconds = window.overlap(group.begin, group.seen_until)
            held[name, limit] = held.get((name, limit), 0.0) + seconds
    notes = (each for each in record.notes if each.source in _NEWS and window.start <= each.at <= window.until)
    lines += [_line(window, note.at, None, note.text) for note in notes]
    return WatchStory(
        since=window.time_text(window.start),
        until=window.time_text(window.until),
        seconds=window.until - window.start,
        headline=_headline(held, window, servers=len(servers)),
        lines=tuple(sorted(lines, key=lambda line: line.at)),
    )


def _within(record: RunRecord, window: WatchWindow) -> Iterator[tuple[str, Overload]]:
    """Yield the overloads that lasted in the window, with their limits."""
    for limit, group in named_overloads(record):
        if window.overlap(group.begin, group.seen_until) > 0:
            yield limit, group


def _line(window: WatchWindow, at: float, server: str | None, text: str) -> WatchStoryLine:
    return WatchStoryLine(at=at, time=window.time_text(at), server=server, text=text)


def _text(window: WatchWindow, record: RunRecord, limit: str, group: Overload) -> str:
    """Return the limit, how long it held, and the worst figures of that time in the window."""
    begin, end = max(group.begin, window.start), min(group.seen_until, window.until)
    history = record.history
    start, stop = history.first_from(begin), history.up_to(end)
    waiting = _most(history.column("waiting", start=start, stop=stop))
    names = ("kv_usage", "kv_blocks_used", "kv_blocks_total")
    usage = _most(kv_usages(*(history.column(each, start=start, stop=stop) for each in names)))
    preempted, failed = group.total(EpisodeKind.PREEMPTIONS), group.total(EpisodeKind.FAILING)
    parts = [f"{limit} for {formats.clock(end - begin)}" + (", from before" if group.begin < window.start else "")]
    parts += [counted(round(failed), "failed request")] if failed else []
    parts += [f"up to {waiting:,.0f} waiting"] if waiting else []
    parts += [f"KV up to {formats.percent(usage)}"] if usage is not None else []
    parts += [counted(round(preempted), "preemption")] if preempted else []
    return "; ".join([parts[0], ", ".join(parts[1:])]) if len(parts) > 1 else parts[0]


def _most(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.max()) if known.size else None


def _headline(held: Mapping[tuple[str | None, str], float], window: WatchWindow, *, servers: int) -> str:
    whole = formats.clock(window.until - window.start)
    if not held:
        return f"no limit was reached in {whole}" + (f" at {servers} servers" if servers > 1 else "")
    longest = sorted(held.items(), key=lambda item: -item[1])
    parts = [f"{f'{name}: ' if name else ''}{limit} for {formats.clock(seconds)}" for (name, limit), seconds in longest]
    shown: Sequence[str] = parts if len(parts) <= 3 else [*parts[:3], f"{len(parts) - 3} more below"]
    return f"{'; '.join(shown)} of {whole}"
