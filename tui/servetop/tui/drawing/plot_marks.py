"""Marks the starts of stages and the episodes on plain-text plots over time, and lists them on the same time axis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

START, SPAN = "┊", "━"
"""A stage begins in this column; an episode lasts."""
_AXIS = "─"
_SHORTEST_NAME = 3
"""Cells that the name of a stage needs at least, else only its beginning is marked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMarks:
    """What happened in a window of time, which has `columns` cells; times are in seconds."""

    window: tuple[float, float]
    columns: int
    starts: Sequence[tuple[float, str]] = ()
    """Beginning and name of each stage, in order of time."""
    spans: Sequence[tuple[str, float, float]] = ()
    """Kind, beginning and end of each episode."""

    def column(self, at: float) -> int:
        """Return the cell of a time, that of the nearest edge beyond the window."""
        first, last = self.window
        share = (at - first) / (last - first) if last > first else 0.0
        return round(min(max(share, 0.0), 1.0) * (self.columns - 1))

    def marked(self, plot: str, *, frame: int) -> str:
        """Mark stages on the empty cells of a plot and episodes on its lower axis.

        Its cells begin behind `frame` cells; its first line is the upper axis.
        """
        first, *lines = plot.split("\n")
        starts = {frame + self.column(at) for at, _ in self.starts}
        spans = {frame + place for _, begin, end in self.spans for place in self._places(begin, end)}
        bottom = max(number for number, line in enumerate(lines) if _AXIS in line)
        marked = [_replaced(line, starts, " ", START) for line in lines[:bottom]]
        return "\n".join([first, *marked, _replaced(lines[bottom], spans, _AXIS, SPAN), *lines[bottom + 1 :]])

    def rows(self) -> list[str]:
        """Return a row with the names of the stages, and one for each kind of episode; none without any."""
        kinds = dict.fromkeys(kind for kind, *_ in self.spans)
        names = [self._stage_row()] if self.starts else []
        return [*names, *(self._episode_row(kind) for kind in kinds)]

    def _places(self, begin: float, end: float) -> range:
        return range(self.column(begin), self.column(end) + 1)

    def _stage_row(self) -> str:
        cells = [" "] * self.columns
        columns = [self.column(at) for at, _ in self.starts]
        for (start, stop), (_, name) in zip(itertools.pairwise([*columns, self.columns + 1]), self.starts, strict=True):
            room = min(stop, self.columns) - start - (2 if stop <= self.columns else 1)
            text = name if len(name) <= room else f"{name[: room - 1]}…" if room >= _SHORTEST_NAME else ""
            cells[start : start + 1 + len(text)] = [START, *text]
        return "".join(cells).rstrip()

    def _episode_row(self, kind: str) -> str:
        """Return the bars of a kind, with its name behind the last one, or else in the last gap with room for it."""
        cells = [" "] * self.columns
        own = [self._places(begin, end) for name, begin, end in self.spans if name == kind]
        taken = sorted({place for places in own for place in places})
        for place in taken:
            cells[place] = SPAN
        behind, gap = taken[-1] + 2, " " * (len(kind) + 2)
        place = behind if behind + len(kind) <= self.columns else max(f" {''.join(cells)} ".rfind(gap), 0)
        cells[place : place + len(kind)] = kind[: self.columns]
        return "".join(cells).rstrip()


def _replaced(line: str, columns: set[int], old: str, new: str) -> str:
    return "".join(new if each == old and place in columns else each for place, each in enumerate(line))
