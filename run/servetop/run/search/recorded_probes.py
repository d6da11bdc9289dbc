"""The probes of a search as its recording has them: one for each stage, until the load changed or stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from servetop.analysis.cells.attempts import session_starts
from servetop.core.events import Note, Severity, StageChange
from servetop.core.tick import Tick
from servetop.run.search.search_evidence import Probe, Purpose

SOURCE, PROBE = "search", "probe"
"""Source and fact of the notes of a search that begin a probe."""
CLIENT_BOUND = "client_bound"
"""Fact of the note that ends a search because the client could not send more."""
OTHERS = "other_clients"
"""Fact of the note that other clients use the server."""
RESTARTED = "restarted"
"""Fact of the note that the server restarted; its `count` is the number of loads before that, which do not count."""
TAKEN_BACK = "taken_back"
"""Fact of the note that a user took the load back: what is sent from then to the next probe does not count."""


def probe_note(text: str, *, at: float, stage: int, purpose: Purpose) -> Note:
    """Return the note that says for which purpose the load of a stage is kept."""
    return Note(at=at, severity=Severity.INFO, source=SOURCE, text=text, fact=PROBE, subject=str(purpose), count=stage)


def taken_back_note(text: str, *, at: float) -> Note:
    """Return the note that the search no longer chooses the load of a run that continues."""
    return Note(at=at, severity=Severity.INFO, source=SOURCE, text=text, fact=TAKEN_BACK)


class RecordedProbes:
    """Collects stages, notes and ticks in the order in which they were recorded."""

    def __init__(self, *, concurrency: bool, since: float = 0.0) -> None:
        """`since` is the run time from which stages are those of the search."""
        self._concurrency = concurrency
        self._since = since
        self._stages: list[StageChange] = []
        self._seams: list[float] = []
        self._purposes: dict[int, Purpose] = {}
        self._taken_back: list[float] = []
        self._loaded: list[tuple[float, float]] = []
        """Spans of ticks with load, which ends before the requests in flight have."""
        self.now = 0.0
        """End of the last tick."""

    def add(self, stages: Sequence[StageChange], notes: Sequence[Note], ticks: Sequence[Tick]) -> None:
        """Add what was recorded since the last call."""
        self._stages += stages
        self._seams += session_starts(notes)
        for note in notes:
            if note.source == SOURCE and note.fact == PROBE and note.count is not None:
                self._purposes[note.count] = Purpose(note.subject or Purpose.MEASURE)
            elif note.source == SOURCE and note.fact == TAKEN_BACK:
                self._taken_back.append(note.at)
        for tick in ticks:
            self.now = tick.end
            if tick.client.gauges.request_rate is None:
                continue
            if self._loaded and self._loaded[-1][1] == tick.start:
                self._loaded[-1] = (self._loaded[-1][0], tick.end)
            else:
                self._loaded.append((tick.start, tick.end))

    def until(self, now: float, *, restarts: Sequence[float] = ()) -> list[Probe]:
        """Return the probes up to a time; one in which the server restarted becomes two."""
        found: list[Probe] = []
        following = [*(stage.at for stage in self._stages), math.inf][1:]
        for stage, next_at in zip(self._stages, following, strict=True):
            load = self._load(stage)
            if load is None or stage.warmup:
                continue
            ends = (at for at in (*self._seams, *self._taken_back) if at > stage.at)
            end = min(next_at, now, *ends)
            end = min(end, max((until for since, until in self._loaded if since < end), default=stage.at))
            if end > stage.at:
                purpose = self._purposes.get(stage.index, Purpose.MEASURE)
                found += _divided(Probe(load=load, begin=stage.at, end=end, purpose=purpose), restarts)
        return found

    def _load(self, stage: StageChange) -> float | None:
        """Return the load of a stage; None if it is not one of this search."""
        others = stage.at < self._since or (
            stage.index not in self._purposes and any(at <= stage.at for at in self._taken_back)
        )
        if stage.request_rate is None or others:
            return None
        if self._concurrency:
            return None if stage.max_concurrency is None else float(stage.max_concurrency)
        return stage.request_rate if math.isfinite(stage.request_rate) else None


def _divided(probe: Probe, restarts: Sequence[float]) -> Iterator[Probe]:
    """Yield the parts of a probe between ascending restarts of the server."""
    edges = [probe.begin, *(at for at in restarts if probe.begin < at < probe.end), probe.end]
    for begin, end in pairwise(edges):
        yield replace(probe, begin=begin, end=end, restarts=sum(at <= begin for at in restarts))
