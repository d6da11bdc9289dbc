"""Measures pairs of runs, ABBA ABBA, until the sequential test has an answer or the budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from servetop.analysis.comparison.comparison import ComparisonOptions
from servetop.analysis.comparison.paired_runs import PairedMetric, compare_pairs
from servetop.analysis.comparison.sequential import next_look
from servetop.analysis.comparison.verdicts import Verdict
from servetop.core.clock import Clock
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode
from servetop.run.pairs.series_folder import ArmConfigs, SeriesFolder, SeriesRun, read_run

FAILURES, CLIENT_BOUND_RUNS = 2, 3
"""Attempts after which a run that failed, or whose client was the bottleneck, ends the series."""


class SeriesEnd(StrEnum):
    """Why a series ended."""

    ANSWERED = "answered"
    BUDGET = "budget spent"
    PAIRS = "all pairs measured"
    NOT_MEASURED = "nothing to compare"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPlan:
    """What a series measures, and at what cost."""

    configs: ArmConfigs
    options: ComparisonOptions
    seed: int
    """Pair i, from 1 on, uses this plus i in both runs."""
    budget: float
    """Seconds for everything, including starts of engines and earlier sessions of the series."""
    pairs: int | None = None
    """Largest number of pairs; None for any."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesState:
    """What is known after a number of pairs."""

    pairs: int
    seconds: float
    """Spent so far."""
    pair_seconds: float
    """Mean of a pair; infinite before the first."""
    metrics: tuple[PairedMetric, ...] = ()

    @property
    def open_metrics(self) -> list[PairedMetric]:
        """The metrics without an answer."""
        return [each for each in self.metrics if each.verdict is Verdict.CANNOT_TELL]

    @property
    def expected_pairs(self) -> int | None:
        """Pairs after which all answers are as likely as not; None if that cannot be estimated."""
        expected = [each.expected for each in self.open_metrics]
        known = [each for each in expected if each is not None]
        return max(known, default=self.pairs) if len(known) == len(expected) else None

    def seconds_left(self, budget: float) -> float:
        """Return the seconds to the expected answer, or to the end of the budget."""
        if self.expected_pairs is None:
            return max(budget - self.seconds, 0.0)
        return min((self.expected_pairs - self.pairs) * self.pair_seconds, max(budget - self.seconds, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesResult:
    """A series that has ended."""

    state: SeriesState
    end: SeriesEnd
    exit_code: ExitCode
    reason: str = ""
    """Why it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRun:
    """How a run ended, as far as its process reports it."""

    exit_code: int
    reason: str
    """The last line of its process; used if there is no recording."""


class SeriesObserver(Protocol):
    """Is called as a series proceeds."""

    def run_begins(self, pair: int, arm: str, *, seed: int, recording: Path) -> None:
        """A run of arm `a` or `b` begins."""
        ...

    def run_discarded(self, recording: Path | None, *, reason: str, again: bool) -> None:
        """A run does not count; `again` says that it is repeated."""
        ...

    def pair_measured(self, state: SeriesState) -> None:
        """A pair is complete, or pairs were found in the folder."""
        ...


class _Stopped(Exception):
    """The series has to end."""

    def __init__(self, end: SeriesEnd, code: int, reason: str) -> None:
        super().__init__(reason)
        self.end, self.reason = end, reason
        known = code in set(ExitCode) and code != ExitCode.OK
        self.exit_code = ExitCode(code) if known else ExitCode.RUN_FAILED


class PairSeries:
    """A series of pairs in a folder."""

    def __init__(
        self,
        plan: SeriesPlan,
        folder: SeriesFolder,
        *,
        play: Callable[[RunConfig, Path], PlayedRun],
        observer: SeriesObserver,
        clock: Clock,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._play = play
        self._observer = observer
        self._clock = clock
        self._interrupted = interrupted
        self._pairs: list[tuple[SeriesRun, SeriesRun]] = []
        self._pair_seconds: list[float] = []
        self._earlier = 0.0

    def measure(self, *, resume: bool = False) -> SeriesResult:
        """Measure pairs until the end; with `resume` those in the folder count."""
        if resume:
            self._pairs = self._folder.measured_pairs(self._plan.configs, seed=self._plan.seed)
            self._pair_seconds = [a.seconds + b.seconds for a, b in self._pairs]
            self._earlier = math.fsum(self._pair_seconds)
        state = self._state()
        if self._pairs:
            self._observer.pair_measured(state)
        try:
            while (end := self._ended(state)) is None:
                self._measure_pair(len(self._pairs) + 1)
                state = self._state()
                self._observer.pair_measured(state)
        except _Stopped as stop:
            return SeriesResult(state=self._state(), end=stop.end, exit_code=stop.exit_code, reason=stop.reason)
        code = ExitCode.OK if end is SeriesEnd.ANSWERED else ExitCode.CANNOT_TELL
        return SeriesResult(state=state, end=end, exit_code=code)

    def _ended(self, state: SeriesState) -> SeriesEnd | None:
        """Return why no further pair is measured; None to continue. Pairs that reach no look are not measured."""
        if state.pairs and not state.metrics:
            return SeriesEnd.NOT_MEASURED
        if state.metrics and not state.open_metrics:
            return SeriesEnd.ANSWERED
        look = next_look(state.pairs)
        if self._plan.pairs is not None and look > self._plan.pairs:
            return SeriesEnd.PAIRS
        if state.pairs and state.seconds + (look - state.pairs) * state.pair_seconds > self._plan.budget:
            return SeriesEnd.BUDGET
        return None

    def _state(self) -> SeriesState:
        pairs, seconds = len(self._pairs), self._pair_seconds
        return SeriesState(
            pairs=pairs,
            seconds=self._earlier + self._clock.now(),
            pair_seconds=math.fsum(seconds) / pairs if pairs else math.inf,
            metrics=_compared(self._pairs, self._plan.options) if pairs else (),
        )

    def _measure_pair(self, number: int) -> None:
        began = self._clock.now()
        order = "ab" if number % 2 else "ba"
        runs = {arm: self._counting_run(arm, number) for arm in order}
        self._pairs.append((runs["a"], runs["b"]))
        self._pair_seconds.append(self._clock.now() - began)

    def _counting_run(self, arm: str, pair: int) -> SeriesRun:
        """Run one arm until a run counts; _Stopped after too many that do not."""
        seed, recording = self._plan.seed + pair, self._folder.recording(arm, pair)
        failures = client_bound = 0
        while True:
            if self._interrupted():
                raise _Stopped(SeriesEnd.INTERRUPTED, ExitCode.INTERRUPTED, "interrupted")
            self._observer.run_begins(pair, arm, seed=seed, recording=recording)
            played = self._play(self._plan.configs.of(arm, seed=seed), recording)
            run = _read(recording, played)
            if run.measured is not None:
                return run
            failures, client_bound = failures + (not run.client_bound), client_bound + run.client_bound
            kept = self._folder.discard(recording) if recording.exists() else None
            if ExitCode.INTERRUPTED in (run.exit_code, played.exit_code):
                raise _Stopped(SeriesEnd.INTERRUPTED, ExitCode.INTERRUPTED, run.reason)
            again = failures < FAILURES and client_bound < CLIENT_BOUND_RUNS
            self._observer.run_discarded(kept, reason=run.reason, again=again)
            if not again:
                raise _Stopped(SeriesEnd.FAILED, run.exit_code, run.reason)


def _read(recording: Path, played: PlayedRun) -> SeriesRun:
    if not recording.exists():
        return SeriesRun(seconds=0.0, exit_code=played.exit_code, reason=played.reason)
    return read_run(recording)


def _compared(pairs: Sequence[tuple[SeriesRun, SeriesRun]], options: ComparisonOptions) -> tuple[PairedMetric, ...]:
    runs = [(a.measured, b.measured) for a, b in pairs if a.measured is not None and b.measured is not None]
    return compare_pairs([a for a, _ in runs], [b for _, b in runs], options)
