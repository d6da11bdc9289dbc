"""One of several watched servers as a run of its own: the frames of a watch of it alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

from servetop.analysis.diagnosis.diagnosis import Diagnosis
from servetop.analysis.live_stats import LiveStats
from servetop.core.events import Note, Severity
from servetop.core.interfaces.replica_change import ReplicaChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.tui.drawing.heat_map import BinnedHistograms
from servetop.tui.state.engine_page import EnginePage
from servetop.tui.state.frame import Frame, View
from servetop.tui.state.judged_replica import JudgedReplica
from servetop.tui.state.run_state import RunState
from servetop.tui.state.steady_stages import SteadyStages


class ReplicaRun(RunState):
    """Shows the history by which the server's row is judged; it is not folded itself, but follows the watch."""

    def __init__(self, watch: RunState, replica: JudgedReplica) -> None:
        super().__init__(header_of_one(watch.header, None, None))
        self._watch, self._replica = watch, replica
        self.history, self.judged = replica.history, replica.judged
        self.binned, self.steady = BinnedHistograms(self.history), SteadyStages(self.history)
        self.stages, self.log, self.commands = watch.stages, watch.log, watch.commands

    def at(self, view: View, *, live: bool) -> Frame:
        """Return the frame at the view's playhead, or of the last judged tick if that is earlier."""
        at = self._follow(view)
        shown = replace(view, playhead=replace(view.playhead, at=at))
        change = self._replica.events.change_at(at)
        return replace(super().at(shown, live=live), server="" if change is None else change.name)

    def engine_page_at(self, view: View) -> Callable[[int], EnginePage]:
        """Return the engine page of the view's playhead or cursor, by the cells of a trend."""
        at = self._follow(view)
        pointed = at if view.cursor is None else min(view.cursor.at, at)
        span = min(self.axis(view).span, at)
        return cache(partial(self.engine_metrics.page, self.header, pointed, until=at, span=span))

    def _follow(self, view: View) -> float:
        """Take over what the watch knows by now; returns the time that can be shown, seconds."""
        at = view.playhead.at if self._watch.fleet is None else min(view.playhead.at, self._watch.fleet.until)
        self.end = self._watch.end
        self.header = header_of_one(self._watch.header, self._replica.events.change_at(at), self._replica.facts_at(at))
        self.engine_metrics.show(self._replica.scrapes)
        return at

    @property
    def notes(self) -> Sequence[Note]:
        """The notes of the watch, without those of other servers; one about many has that of this server beside it."""
        own = {each.name for each in self._replica.events.changes}
        others = () if self._watch.fleet is None else self._watch.fleet.names - own
        prefixes = tuple(f"{name}: " for name in others)
        shown = [each for each in self._watch.notes if not each.text.startswith(prefixes)]
        folded = [each for each in _never_watched(self._replica.events.changes) if not _is_shown(each, shown)]
        return sorted([*shown, *folded], key=lambda note: note.at) if folded else shown

    def verdict(self, stats: LiveStats) -> Diagnosis:
        """Return the verdict on this server."""
        return self._replica.verdict(stats)


def _never_watched(changes: Sequence[ReplicaChange]) -> Iterator[Note]:
    """Yield a note for each reason why a server could not be watched, before it was for the first time."""
    for change in itertools.takewhile(lambda each: not each.state.responds, changes):
        if change.reason:
            text = f"{change.name}: {change.reason}"
            yield Note(at=change.at, severity=Severity.WARNING, source="engine", text=text)


def _is_shown(note: Note, notes: Sequence[Note]) -> bool:
    return any(each.text == note.text for each in notes)


def header_of_one(header: RunHeader, change: ReplicaChange | None, facts: EngineFacts | None) -> RunHeader:
    """Return the header of a watch of one server, as it would be if it had been watched alone."""
    config = header.config
    watch = None if config.watch is None else replace(config.watch, several=False, names=(), file=None)
    url = config.engine.url if change is None else change.url
    engine = replace(config.engine, url=url, more_urls=())
    return replace(header, engine=facts, config=replace(config, engine=engine, watch=watch))
