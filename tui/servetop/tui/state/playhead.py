"""The playhead: the time of the run that is shown, and how it moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servetop.core.tick import TICK_SECONDS

SLOWEST, FASTEST = 0.25, 64.0
BEFORE_LOAD = 2.0
"""Seconds before the load at which a replay starts; Home goes to the start of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Playhead:
    """A position in a run. Times and spans are seconds; `edge` is the end of what is recorded."""

    at: float = 0.0
    speed: float = 1.0
    """Run seconds per real second."""
    playing: bool = True
    following: bool = False
    """Stay at the edge as it moves."""

    @classmethod
    def opened(
        cls, *, edge: float, growing: bool, start_at: float | None = None, load_at: float | None = None
    ) -> Playhead:
        """Starts at the edge of a growing run, else just before its load; `start_at` overrides both.

        Without a load (`load_at` is None), as when the engine did not start, it starts at second 0.
        """
        if start_at is not None:
            return cls(at=_within(start_at, edge))
        if growing:
            return cls(at=edge, following=True)
        return cls(at=_within((load_at or 0.0) - BEFORE_LOAD, edge))

    def advanced(self, elapsed: float, *, edge: float) -> Playhead:
        """Moves on by `elapsed` real seconds; playback stops at the edge."""
        if self.following:
            return replace(self, at=edge)
        if not self.playing or self.at >= edge:
            return self
        return replace(self, at=min(self.at + elapsed * self.speed, edge))

    def toggled(self, *, edge: float) -> Playhead:
        """Plays or pauses; at the edge, playback restarts at second 0."""
        if self.following or (self.playing and self.at >= edge):
            return replace(self, at=0.0, playing=True, following=False)
        return replace(self, playing=not self.playing)

    def moved_by(self, by: float, *, edge: float) -> Playhead:
        """Moves by seconds within the run; moving back stops following."""
        if self.following and by >= 0:
            return self
        return replace(self, at=_within(self.at + by, edge), following=False)

    def stepped(self, ticks: int, *, edge: float) -> Playhead:
        """Moves by `ticks` to a tick boundary, and pauses."""
        boundary = round(self.at / TICK_SECONDS) + ticks
        return replace(self, at=_within(boundary * TICK_SECONDS, edge), playing=False, following=False)

    def moved_to(self, at: float, *, edge: float) -> Playhead:
        """Moves to a time of the run and stops following; keeps playing or pausing."""
        return replace(self, at=_within(at, edge), following=False)

    def at_start(self) -> Playhead:
        """Moves to second 0."""
        return replace(self, at=0.0, following=False)

    def at_edge(self, *, edge: float) -> Playhead:
        """Moves to the edge, and follows it."""
        return replace(self, at=edge, playing=True, following=True)

    def scaled(self, factor: float) -> Playhead:
        """Multiplies the speed, within ×0.25 to ×64."""
        return replace(self, speed=min(max(self.speed * factor, SLOWEST), FASTEST))


def _within(at: float, edge: float) -> float:
    return min(max(at, 0.0), edge)
