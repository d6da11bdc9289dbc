"""The playhead: the time of the run that is shown, and how it moves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servetop.core.tick import TICK_SECONDS

SLOWEST, FASTEST = 0.25, 64.0
BEFORE_LOAD = 2.0
"""Seconds before the load from which a finished run is played; Home goes to the start of the engine."""


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
    def opened(cls, *, edge: float, growing: bool, start_at: float | None = None) -> Playhead:
        """Follows the edge of a growing run, and is paused at the end of a finished one; `start_at` plays there."""
        if start_at is not None:
            return cls(at=_within(start_at, edge))
        return cls(at=edge, following=growing, playing=growing)

    def advanced(self, elapsed: float, *, edge: float) -> Playhead:
        """Moves on by `elapsed` real seconds; playback stops at the edge."""
        if self.following:
            return replace(self, at=edge)
        if not self.playing or self.at >= edge:
            return self
        return replace(self, at=min(self.at + elapsed * self.speed, edge))

    def toggled(self, *, edge: float, load_at: float | None = None) -> Playhead:
        """Plays or pauses; at the edge, playback restarts just before the load, without one at second 0."""
        if self.following or self.at >= edge:
            start = _within((load_at or 0.0) - BEFORE_LOAD, edge)
            return replace(self, at=start, playing=True, following=False)
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

    def paused_at(self, at: float, *, edge: float) -> Playhead:
        """Moves to a time of the run, and pauses."""
        return replace(self, at=_within(at, edge), playing=False, following=False)

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
