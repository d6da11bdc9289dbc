"""Compares an engine with a slower one (A/B): the planted loss must be found at the cost that the comparison prints."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.compared_metrics import metric_named
from servetop.analysis.comparison.comparison import ComparisonOptions, compare
from servetop.analysis.comparison.measured_difference import MeasuredDifference
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison.verdicts import Verdict
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.comparisons.drawn_runs import START_SPREAD, DrawnLoad, arm, draw_load, start_effect
from tests.comparisons.same_engine import draws

_FIRST_STARTS = 5
"""Starts of each arm of the first comparison, where starts differ."""
_ROUNDS = 3
"""How often what the comparison asks for is measured, before it counts as unanswered."""
_MOST_REQUESTS = 200_000
"""Requests beyond which a run is not lengthened: the case counts as unanswered."""
_MOST_STARTS = 150


@dataclass(frozen=True, kw_only=True)
class Change:
    """A planted difference."""

    name: str
    metric: str
    slower: float = 1.0
    """Factor of all costs of the engine B."""
    later: float = 1.0
    """Factor of the time to first token of every request of B."""
    closed: bool = True
    start_effects: bool = False
    same_seed: bool = False


CHANGES = (
    Change(name="throughput -2 %", metric="output_throughput", slower=1 / 0.98),
    Change(name="throughput -2 %, equal seeds", metric="output_throughput", slower=1 / 0.98, same_seed=True),
    Change(name="throughput -2 %, starts differ", metric="output_throughput", slower=1 / 0.98, start_effects=True),
    Change(name="TTFT p99 +10 %", metric="p99_ttft_ms", later=1.1, closed=False),
    Change(name="TTFT p99 +10 %, equal seeds", metric="p99_ttft_ms", later=1.1, closed=False, same_seed=True),
    Change(name="throughput -1 %", metric="output_throughput", slower=1 / 0.99),
    Change(name="throughput -1 %, starts differ", metric="output_throughput", slower=1 / 0.99, start_effects=True),
)


@dataclass(kw_only=True)
class Answers:
    """The verdicts on one planted change, and what they cost."""

    at_once: Counter[Verdict] = field(default_factory=Counter)
    """After the first runs."""
    final: Counter[Verdict] = field(default_factory=Counter)
    """After the printed cost was paid."""
    unpaid: int = 0
    """Cases whose cost was above what is measured here, or unknown."""
    seconds: list[float] = field(default_factory=list)
    """Length of the runs of each arm at the end."""
    starts: list[int] = field(default_factory=list)

    @property
    def cost(self) -> str:
        """The median of what was measured for the last verdict."""
        starts = statistics.median(self.starts)
        return f"{starts:g} × {statistics.median(self.seconds):,.0f} s"


@dataclass
class _Measuring:
    """Runs of both arms, lengthened or repeated as a comparison asks."""

    change: Change
    load: DrawnLoad
    random: Random
    seconds: float
    starts: int

    def __post_init__(self) -> None:
        self._speeds: list[tuple[float, float]] = []
        self._seeds: list[tuple[int, int]] = []

    def compared(self) -> MeasuredDifference:
        """Measure both arms, and compare the metric of the change."""
        while len(self._seeds) < self.starts:
            first, other = (self.random.randrange(1 << 20) for _ in range(2))
            self._seeds.append((first, first if self.change.same_seed else other))
            self._speeds.append((self._start_effect(), self._start_effect()))
        metric = metric_named(self.change.metric)
        assert metric is not None
        spread = START_SPREAD if self.change.start_effects else 0.0
        options = ComparisonOptions(metrics=[metric], start_spread=StartSpread.everywhere(spread))
        (stage,) = compare(self._arm(0), self._arm(1), options).stages
        (found,) = stage.metrics
        return found

    def pay(self, found: MeasuredDifference) -> bool:
        """Measure as much more as the comparison asked for; False if that is unknown or too much."""
        if found.more_starts is None and found.more_seconds is None:
            return False
        self.starts += found.more_starts or 0
        self.seconds += found.more_seconds or 0.0
        return self.load.requests(self.seconds) <= _MOST_REQUESTS and self.starts <= _MOST_STARTS

    def _start_effect(self) -> float:
        return start_effect(self.random) if self.change.start_effects else 1.0

    def _arm(self, side: int) -> list[ArmRun]:
        slower = self.change.slower if side else 1.0
        runs = arm([self._plan(side, number, slower) for number in range(self.starts)], "ab"[side])
        return [_with_later_tokens(run, self.change.later) for run in runs] if side else runs

    def _plan(self, side: int, number: int, slower: float) -> VirtualRunPlan:
        speed = slower * self._speeds[number][side]
        return self.load.plan(self._seeds[number][side], slower=speed, seconds=self.seconds)


def _with_later_tokens(run: ArmRun, factor: float) -> ArmRun:
    stages = [
        dataclasses.replace(stage, latencies={**stage.latencies, "ttft": stage.latencies["ttft"] * factor})
        for stage in run.stages
    ]
    return dataclasses.replace(run, stages=stages)


def find_change(change: Change, *, seed: int, cases: int) -> Answers:
    """Plant a change in a number of engines, and pay what the comparison asks for until it has a verdict."""
    answers = Answers()
    for random in draws(seed, change.name, cases):
        load = draw_load(random, closed=change.closed)
        seconds = load.stage.duration or 60.0
        measuring = _Measuring(change, load, random, seconds, _FIRST_STARTS if change.start_effects else 1)
        found = measuring.compared()
        answers.at_once[found.verdict] += 1
        for _ in range(_ROUNDS):
            if found.verdict is not Verdict.CANNOT_TELL:
                break
            if not measuring.pay(found):
                answers.unpaid += 1
                break
            found = measuring.compared()
        answers.final[found.verdict] += 1
        answers.seconds.append(measuring.seconds)
        answers.starts.append(measuring.starts)
    return answers
