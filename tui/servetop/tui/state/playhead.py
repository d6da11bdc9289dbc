"""Where in a run the viewer looks, and how that moves: play, pause, seek, speed, follow the newest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servetop.core.tick import TICK_SECONDS

SLOWEST, FASTEST = 0.25, 64.0
BEFORE_LOAD = 2.0
"""Seconds of the engine's start that a replay shows; Home shows all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Playhead:
    """A position in run time. Instants and spans are seconds; `edge` is the end of what there is to see."""

    at: float = 0.0
    speed: float = 1.0
    """Run seconds per second of the viewer."""
    playing: bool = True
    following: bool = False
    """Stay at the edge, wherever it moves."""

    @classmethod
    def opened(
        cls, *, edge: float, growing: bool, start_at: float | None = None, load_at: float | None = None
    ) -> Playhead:
        """At the edge of a growing run, else just before its load began; `start_at` overrules both.

        Without a load (`load_at` is None), as when the engine did not start, at second 0.
        """
        if start_at is not None:
            return cls(at=_within(start_at, edge))
        if growing:
            return cls(at=edge, following=True)
        return cls(at=_within((load_at or 0.0) - BEFORE_LOAD, edge))

    def advanced(self, elapsed: float, *, edge: float) -> Playhead:
        """After `elapsed` seconds of the viewer's time; playing stops at the edge."""
        if self.following:
            return replace(self, at=edge)
        if not self.playing or self.at >= edge:
            return self
        return replace(self, at=min(self.at + elapsed * self.speed, edge))

    def toggled(self, *, edge: float) -> Playhead:
        """Play or pause; at the edge, playing begins again at the start."""
        if self.following or (self.playing and self.at >= edge):
            return replace(self, at=0.0, playing=True, following=False)
        return replace(self, playing=not self.playing)

    def moved_by(self, by: float, *, edge: float) -> Playhead:
        """Moved by seconds, within the run; moving back stops following."""
        if self.following and by >= 0:
            return self
        return replace(self, at=_within(self.at + by, edge), following=False)

    def stepped(self, ticks: int, *, edge: float) -> Playhead:
        """Moved to a tick boundary `ticks` away, and paused there."""
        boundary = round(self.at / TICK_SECONDS) + ticks
        return replace(self, at=_within(boundary * TICK_SECONDS, edge), playing=False, following=False)

    def moved_to(self, at: float, *, edge: float) -> Playhead:
        """At an instant of the run; playing or paused as before, no longer following."""
        return replace(self, at=_within(at, edge), following=False)

    def at_start(self) -> Playhead:
        """At second 0."""
        return replace(self, at=0.0, following=False)

    def at_edge(self, *, edge: float) -> Playhead:
        """At the newest, following it."""
        return replace(self, at=edge, playing=True, following=True)

    def scaled(self, factor: float) -> Playhead:
        """At another speed, from ×0.25 to ×64."""
        return replace(self, speed=min(max(self.speed * factor, SLOWEST), FASTEST))


def _within(at: float, edge: float) -> float:
    return min(max(at, 0.0), edge)
