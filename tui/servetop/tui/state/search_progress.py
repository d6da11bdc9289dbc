"""What a search knew at one time of its run: its loads with their figures, and its answer so far."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from servetop.core.config_values.search_config import SearchConfig
from servetop.core.events import Note, StageChange
from servetop.core.interfaces.search_state import SearchedLoad, SearchedObjective, SearchState
from servetop.core.text import formats

_SOURCE, _PROBE = "search", "probe"
"""Source and fact of the notes that begin a load of a search."""
_RESTARTED = "restarted"
"""Fact of the note that the server restarted; its count is the number of loads before that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProgress:
    """A search as of the playhead."""

    search: SearchConfig
    at: float
    states: tuple[SearchState, ...] = ()
    """The decisions up to then; empty before the first one, and for a recording before format 1.16."""
    loads: tuple[SearchedLoad, ...] = ()
    """All loads that were kept, in order of time; without figures in a recording before format 1.16."""
    uncounted: int = 0
    """The number of the first loads that no longer count, because the server restarted since."""
    newest_note: str = ""
    """The newest note of the search, for a recording before format 1.16."""

    @property
    def newest(self) -> SearchState | None:
        """The newest decision; None before the first one."""
        return self.states[-1] if self.states else None

    @property
    def over(self) -> bool:
        """Whether the search has ended."""
        return self.newest is not None and self.newest.load is None

    @property
    def objectives(self) -> tuple[SearchedObjective, ...]:
        """What is kept within limits; empty before the first decision."""
        return () if self.newest is None else self.newest.objectives

    @property
    def binding(self) -> int:
        """The place of the objective that sets the first answer, 0 while none does."""
        answers = () if self.newest is None else self.newest.answers
        return next((each.binding for each in answers if each.binding is not None), 0)

    @property
    def unit(self) -> str:
        """The unit of a load."""
        return "in flight" if self.search.concurrency else "req/s"

    def number(self, load: float) -> str:
        """Return a load without its unit."""
        return f"{load:,.0f}" if self.search.concurrency else formats.rate_number(load)


class SearchHistory:
    """The decisions of a search, from which its progress at any time follows."""

    def __init__(self, search: SearchConfig | None) -> None:
        self.searched = search
        """The search of the run; None while there is none."""
        self._states: list[SearchState] = []
        self._merged: tuple[int, tuple[SearchedLoad, ...]] = (0, ())
        """Loads of the first states, and of how many."""

    @property
    def over(self) -> bool:
        """Whether the newest decision was the last one: the search has ended, or its load was taken back."""
        return bool(self._states) and self._states[-1].load is None

    def fold(self, states: Sequence[SearchState]) -> None:
        """Add decisions, in order of time."""
        self._states += states

    def at(self, known: float, *, stages: Sequence[StageChange], notes: Sequence[Note]) -> SearchProgress | None:
        """Return the progress at a time, up to which there were these stages and notes; None if nothing is searched."""
        search = self.searched
        if search is None or known < (search.since or 0.0):
            return None
        count = bisect.bisect_right(self._states, known, key=attrgetter("at"))
        if not self._states:
            return _derived(search, known, stages, notes)
        if self._merged[0] != count:
            self._merged = count, _newest_of(self._states[:count])
        return SearchProgress(
            search=search,
            at=known,
            states=tuple(self._states[:count]),
            loads=self._merged[1],
            uncounted=_uncounted(notes),
        )


def _uncounted(notes: Sequence[Note]) -> int:
    """Return how many loads were before the last restart of the server that is known."""
    counts = (note.count for note in reversed(notes) if note.source == _SOURCE and note.fact == _RESTARTED)
    return next(counts, 0) or 0


def _newest_of(states: Sequence[SearchState]) -> tuple[SearchedLoad, ...]:
    """Return each load as the newest state that has it."""
    found = {each.number: each for state in states for each in state.loads}
    return tuple(found[number] for number in sorted(found))


def _derived(search: SearchConfig, at: float, stages: Sequence[StageChange], notes: Sequence[Note]) -> SearchProgress:
    """Return what a recording without decisions tells: its loads are its stages, and its notes have the answer."""
    own = [note for note in notes if note.source == _SOURCE]
    purposes = {note.count: note.subject for note in own if note.fact == _PROBE}
    ends = [*(stage.at for stage in stages), at][1:]
    loads: list[SearchedLoad] = []
    for stage, end in zip(stages, ends, strict=True):
        load = stage.max_concurrency if search.concurrency else stage.request_rate
        if load is not None and stage.request_rate is not None and not stage.warmup and math.isfinite(load):
            purpose = purposes.get(stage.index) or "measure"
            loads.append(
                SearchedLoad(number=len(loads), load=float(load), begin=stage.at, end=min(end, at), purpose=purpose)
            )
    return SearchProgress(search=search, at=at, loads=tuple(loads), newest_note=own[-1].text if own else "")
