"""The engine's log merged with servetop's own notes, by time; with severity levels and a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.log_severity import severity_of
from servetop.core.events import LogLine, Severity
from servetop.core.text.sanitize import sanitize_log_line
from servetop.tui.state.frame import Frame
from servetop.tui.state.log_text import split_prefix
from servetop.tui.state.run_state import MOST_LOG_LINES
from servetop.tui.state.timeline_events import TimelineEvent, timeline_events


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the engine's log, or, with a symbol, of servetop."""

    at: float
    severity: Severity
    text: str
    """Sanitized, without the engine's own time, level and process."""
    symbol: str = ""
    """Of servetop's own entries; empty for a line of the engine."""
    source: str = ""
    """The place in the engine's code, as `core.py:83`."""

    @property
    def searched(self) -> str:
        """Everything that a search looks at."""
        return f"{self.text} {self.source}"


LEVELS = (Severity.INFO, Severity.WARNING, Severity.ERROR)
"""The minimum severities that the filter cycles through."""
_SYMBOLS = {"✖": Severity.ERROR, "▲": Severity.WARNING}
_MOST_NEW = 5000


class MergedLog:
    """Merges both logs; caches the lines it has read, because a log may have 50,000."""

    def __init__(self) -> None:
        self._engine: list[LogEntry] = []
        self._last: LogLine | None = None
        self._count = 0

    def entries(self, frame: Frame, *, least: Severity = Severity.INFO) -> Sequence[LogEntry]:
        """Return all entries up to the frame's time with at least this severity, oldest first."""
        self._read(frame.log)
        own = [
            _own(each) for each in timeline_events(frame) if each.at <= frame.stats.at and not _is_log_line(each, frame)
        ]
        merged = sorted([*self._engine, *own], key=attrgetter("at"))
        rank = LEVELS.index(least)
        return merged if not rank else [entry for entry in merged if LEVELS.index(entry.severity) >= rank]

    def _read(self, log: Sequence[LogLine]) -> None:
        fresh = self._fresh(log)
        if fresh is None:
            self._engine, fresh = [], log
        self._engine += [engine_entry(line) for line in fresh]
        del self._engine[:-MOST_LOG_LINES]
        self._last, self._count = (log[-1] if log else None), len(log)

    def _fresh(self, log: Sequence[LogLine]) -> Sequence[LogLine] | None:
        """Return the lines after the last one read; None if this is another log, as after a seek back."""
        for back in range(min(len(log), _MOST_NEW)):
            if log[-1 - back] is self._last:
                grown = len(log) - back == self._count or len(log) == MOST_LOG_LINES
                return log[len(log) - back :] if grown else None
        return None


def engine_entry(line: LogLine) -> LogEntry:
    """Return one line of the engine's log."""
    message, source = split_prefix(sanitize_log_line(line.text))
    return LogEntry(line.at, severity_of(line.text), message, source=source)


def matching(entries: Sequence[LogEntry], query: str) -> list[int]:
    """Return the positions of the entries that contain the query, ignoring case; none for an empty query."""
    needle = query.casefold()
    return [number for number, entry in enumerate(entries) if needle in entry.searched.casefold()] if needle else []


def _own(each: TimelineEvent) -> LogEntry:
    return LogEntry(each.at, _SYMBOLS.get(each.symbol, Severity.INFO), each.text, each.symbol)


def _is_log_line(each: TimelineEvent, frame: Frame) -> bool:
    """Whether the engine's log already contains this event as a line."""
    return any(episode.kind is EpisodeKind.ENGINE_ERROR and episode.begin == each.at for episode in frame.episodes)
