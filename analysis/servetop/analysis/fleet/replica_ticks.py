"""The ticks of each of several watched servers, as if it had been watched alone."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from servetop.analysis.fleet.sample_lifetimes import SAMPLE_LIFETIME, rare_lifetimes
from servetop.core.events import EngineSample, ReplicaSample
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState
from servetop.core.tick import Tick


class ReplicaTicks:
    """The changes of one server in order, and its newest sample; `ticks` joins them with the ticks of the watch."""

    def __init__(self) -> None:
        self.changes: list[ReplicaChange] = []
        self._sample: ReplicaSample | None = None
        self._ends: deque[float] = deque(maxlen=3)
        """When its newest samples were read or scraped, from which it follows how long the last one counts."""
        self._rare = False
        self._rare_of: ReplicaChange | None = None
        """The change for which `_rare` is known: whether its metrics are those of a Prometheus server."""
        self._later: list[ReplicaSample] = []

    def add(self, samples: Sequence[ReplicaSample], changes: Sequence[ReplicaChange]) -> None:
        """Add what is new, each in order of time."""
        self._later += samples
        self.changes += changes

    def ticks(self, ticks: Sequence[Tick]) -> list[Tick]:
        """Return the next ticks of the watch with the samples of this server in place of their sum."""
        found, used = [], 0
        for tick in ticks:
            while used < len(self._later) and self._later[used].scrape_end <= tick.end:
                self._sample, used = self._later[used], used + 1
                self._ends.append(self._sample.scrape_end)
            found.append(Tick(client=tick.client, engine=self._sample_at(tick.end)))
        del self._later[:used]
        return found

    def change_at(self, at: float) -> ReplicaChange | None:
        """Return its last change up to a time; None before the first."""
        position = bisect.bisect_right(self.changes, at, key=attrgetter("at"))
        return self.changes[position - 1] if position else None

    def restarted_at(self, at: float) -> float | None:
        """Return when it was restarted last, up to a time; None if it was not."""
        known = self.changes[: bisect.bisect_right(self.changes, at, key=attrgetter("at"))]
        return next((each.at for each in reversed(known) if each.state is ReplicaState.RESTARTED), None)

    def _sample_at(self, at: float) -> EngineSample | None:
        change, sample = self.change_at(at), self._sample
        if change is None or not change.state.responds or sample is None:
            return None
        return sample if at - sample.scrape_end <= self._lifetime(change) else None

    def _lifetime(self, change: ReplicaChange) -> float:
        if change is not self._rare_of:
            self._rare_of, self._rare = change, change.is_rare
        return float(rare_lifetimes(np.array(self._ends))[-1]) if self._rare else SAMPLE_LIFETIME
