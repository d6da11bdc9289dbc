"""When the server of a run restarted, from its counters and from the notes of its recording.

A restarted server counts from 0 again, and its process has another start, if its metrics have that. An engine that
servetop started itself and starts again for `--resume`, with the same command, is the same server.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from servetop.analysis.cells.attempts import session_starts
from servetop.analysis.diagnosis.run_record import restarts
from servetop.core.events import EngineSample, Note, ReplicaSample
from servetop.core.interfaces.series_scrape import PROCESS_START, SeriesScrape, unpack_numbers
from servetop.core.tick import Tick

_COUNTERS = ("requests_finished_total", "prompt_tokens_total", "generation_tokens_total")
_LEAST_FALL = 0.5
"""Share of a counter that a restart takes at least: one more scrape shows what was served since."""
_LATER = 1.0
"""Seconds by which the start of another process is later at least."""
_SAME = 5.0
"""A start that is seen within these seconds of another sign is of the same restart."""
_RETURN = 0.5
"""Share of a fall that comes back in one scrape if two servers answer in turn behind one address."""


class ServerRestarts:
    """Collects samples and notes in the order in which they were recorded; `times` has the restarts."""

    def __init__(self, *, managed: bool = False, replicas: bool = False) -> None:
        """`managed`: servetop starts the engine itself; `replicas`: each of several servers has samples of its own."""
        self._managed = managed
        self._replicas = replicas
        self._servers: dict[int, _Counters] = {}
        self._starts = _ProcessStarts()
        self._noted: list[float] = []

    @property
    def times(self) -> list[float]:
        """Run times in seconds from which another server answered, ascending."""
        found = [*self._noted, *(at for each in self._servers.values() for at in each.restarts)]
        alone = (at for at in self._starts.restarts if all(abs(at - each) > _SAME for each in found))
        return sorted([*found, *alone])

    def add(
        self,
        ticks: Sequence[Tick],
        replica_samples: Sequence[ReplicaSample],
        notes: Sequence[Note],
        series: Sequence[SeriesScrape] = (),
    ) -> None:
        """Add what was recorded since the last call."""
        own = [note.at for note in restarts(notes)]
        self._noted += own
        seams = sorted([*own, *(session_starts(notes) if self._managed else ())])
        self._starts.add(series, seams)
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


class _ProcessStarts:
    """The starts of the server processes."""

    def __init__(self) -> None:
        self.restarts: list[float] = []
        self._names: tuple[str, ...] = ()
        self._last: dict[str, float] = {}
        self._at = -1.0
        self._seams: list[float] = []
        self._alternates = False

    def add(self, series: Sequence[SeriesScrape], seams: Sequence[float]) -> None:
        """Add scrapes in order of time, and seams: a start before one is not compared with one after it."""
        self._seams += seams
        for scrape in series:
            self._names = scrape.name_list or self._names
            for name, start in self._started(scrape):
                before = self._last.get(name, start)
                known = not any(self._at < seam <= scrape.at for seam in self._seams)
                if start < before - _LATER:  # two servers answer in turn behind one address
                    self._alternates, self.restarts = True, []
                elif start > before + _LATER and known and not self._alternates:
                    self.restarts.append(scrape.at)
                self._last[name] = start
            self._at = scrape.at

    def _started(self, scrape: SeriesScrape) -> Iterator[tuple[str, float]]:
        places = [place for place, name in enumerate(self._names) if name.partition("{")[0] == PROCESS_START]
        numbers = unpack_numbers(scrape.numbers, count=len(self._names)) if places else None
        for place in places if numbers is not None else ():
            (start,) = struct.unpack_from("<d", numbers or b"", 8 * place)
            yield self._names[place], start


def _returned(value: float, before: float, after: float) -> bool:
    """Whether a counter that fell came back by one scrape: the page is not always that of the same server."""
    return value - after > _RETURN * (before - after)
