"""When the server of a search restarted, from its counters and from the notes of its recording.

A restarted server counts from 0 again. An engine that servetop started itself and starts again for `--resume`, with
the same command, is the same server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servetop.analysis.cells.attempts import session_starts
from servetop.analysis.diagnosis.run_record import restarts
from servetop.core.events import EngineSample, Note, ReplicaSample
from servetop.core.tick import Tick

_COUNTERS = ("requests_finished_total", "prompt_tokens_total", "generation_tokens_total")
_LEAST_FALL = 0.5
"""Share of a counter that a restart takes at least: one more scrape shows what was served since."""
_RETURN = 0.5
"""Share of a fall that comes back in one scrape if two servers answer in turn behind one address."""


class ServerRestarts:
    """Collects samples and notes in the order in which they were recorded; `times` has the restarts."""

    def __init__(self, *, managed: bool = False, replicas: bool = False) -> None:
        """`managed`: servetop starts the engine itself; `replicas`: each of several servers has samples of its own."""
        self._managed = managed
        self._replicas = replicas
        self._servers: dict[int, _Counters] = {}
        self._noted: list[float] = []

    @property
    def times(self) -> list[float]:
        """Run times in seconds from which another server answered, ascending."""
        return sorted([*self._noted, *(at for each in self._servers.values() for at in each.restarts)])

    def add(self, ticks: Sequence[Tick], replica_samples: Sequence[ReplicaSample], notes: Sequence[Note]) -> None:
        """Add what was recorded since the last call."""
        own = [note.at for note in restarts(notes)]
        self._noted += own
        seams = sorted([*own, *(session_starts(notes) if self._managed else ())])
        for number, sample in self._samples(ticks, replica_samples):
            while seams and seams[0] <= sample.scrape_start:
                seams.pop(0)
                self._forget()
            self._servers.setdefault(number, _Counters()).add(sample)
        if seams:
            self._forget()

    def _samples(
        self, ticks: Sequence[Tick], replica_samples: Sequence[ReplicaSample]
    ) -> Iterator[tuple[int, EngineSample]]:
        if self._replicas:
            yield from ((each.replica, each) for each in replica_samples)
        else:
            yield from ((0, tick.engine) for tick in ticks if tick.engine is not None)

    def _forget(self) -> None:
        """Compare no counter with its value before a restart that is known from a note."""
        for each in self._servers.values():
            each.forget()


class _Counters:
    """The counters of one server."""

    def __init__(self) -> None:
        self.restarts: list[float] = []
        self._last: dict[str, float] = {}
        self._fell: dict[str, tuple[float, float]] = {}
        """For each counter that fell in the last scrape, its values before and after."""
        self._at = -1.0
        self._alternates = False

    def add(self, sample: EngineSample) -> None:
        """Add the next sample; one that was added before changes nothing."""
        if sample.scrape_end <= self._at or self._alternates:
            return
        self._at = sample.scrape_end
        found = {name: value for name in _COUNTERS if (value := getattr(sample, name)) is not None}
        if any(_returned(found[name], *self._fell[name]) for name in found if name in self._fell):
            self._alternates = True
            self.restarts.pop()
            return
        self._fell = {
            name: (self._last[name], value)
            for name, value in found.items()
            if value < (1 - _LEAST_FALL) * self._last.get(name, 0.0)
        }
        if self._fell:
            self.restarts.append(sample.scrape_end)
        self._last |= found

    def forget(self) -> None:
        """Forget the values, so that the next sample is not compared with them."""
        self._last, self._fell = {}, {}


def _returned(value: float, before: float, after: float) -> bool:
    """Whether a counter that fell came back by one scrape: the page is not always that of the same server."""
    return value - after > _RETURN * (before - after)
