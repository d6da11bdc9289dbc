"""An episode: one period of a run in which one thing was wrong, with its worst value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class EpisodeKind(StrEnum):
    """What was wrong during an episode, the most serious first."""

    FAILING = "requests failing"
    STALL = "stall"
    ENGINE_ERROR = "error in the engine's log"
    CLIENT = "client late"
    KV = "KV cache full"
    PREEMPTIONS = "preemptions"
    BATCH = "batch full"
    QUEUE = "queue"
    AWAITING = "no first token"
    """Requests wait for their first token at an engine that does not export its queue."""
    IN_FLIGHT = "in flight grows"
    """More requests arrive than complete, and more in flight do not raise the throughput enough."""
    LONG_PROMPTS = "long prompts"
    THROTTLED = "GPU throttled"


KINDS = tuple(EpisodeKind)
"""All kinds, the most serious first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode; times are seconds since the run's origin.

    It is detected some time after it began, and its end is confirmed some time after it ended, so that what a viewer
    shows at one time never depends on later ticks.
    """

    kind: EpisodeKind
    begin: float
    detected_at: float
    end: float | None = None
    """None while it lasts."""
    closed_at: float | None = None
    """The time at which the end was confirmed."""
    seen_until: float = float("nan")
    """The end of the last tick so far in which its condition held, while it lasts; NaN if unknown."""
    worst: float
    """In the unit of its kind: requests waiting or in flight, KV usage 0..1, preemptions/s, fraction failed or late,
    seconds."""
    worst_at: float
    total: float = 0.0
    """Preemptions or failed requests; 0 for other kinds."""
    batch: float = float("nan")
    """The engine's batch size in force when it was detected, of a full cache that of a replica; NaN if unknown."""
    inferred: bool = False
    """Whether `batch` is not exported, but the number of sequences that ran while others waited."""
    level: float = 1.0
    """The KV usage from which the cache counted as full when it was detected, 0..1."""
    fits: int = 0
    """Sequences that fit into the KV cache of a replica, as estimated when it was detected; 0 if unknown."""
    text: str = ""
    """The first line of the log, for an error in it."""

    def is_active(self, at: float) -> bool:
        """Whether it was known to last at a time."""
        return self.detected_at <= at and (self.closed_at is None or at < self.closed_at)

    def as_known_at(self, at: float) -> Episode:
        """Return what was known at a time: an end that was confirmed later was not."""
        return self if self.closed_at is not None and self.closed_at <= at else replace(self, end=None, closed_at=None)

    def seconds(self, until: float) -> float:
        """Its length in seconds; up to `until` while it lasts."""
        return (until if self.end is None else self.end) - self.begin

    def overlaps(self, start: float, until: float) -> bool:
        """Whether it lasted at some time between two times."""
        return self.begin < until and (self.end is None or self.end > start)
