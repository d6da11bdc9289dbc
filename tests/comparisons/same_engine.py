"""Compares runs of one engine with each other (A/A): every better or worse is a false alarm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.compared_metrics import Family
from servetop.analysis.comparison.comparison import Comparison, ComparisonOptions, compare
from servetop.analysis.comparison.start_spread import StartSpread
from servetop.analysis.comparison.verdicts import Verdict
from tests.comparisons.drawn_runs import START_SPREAD, DrawnLoad, arm, draw_load, start_effect
from tests.comparisons.load_shapes import LoadShape
from tests.comparisons.loaded_machine import MOST_PAIRS, busy_pair

ALARMS = (Verdict.BETTER, Verdict.WORSE)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How the runs of a pair differ although their engines are the same."""

    name: str
    same_seed: bool
    """Both arms send the same requests at the same times."""
    starts: int = 1
    """Starts of each arm, each with its own seed."""
    start_effects: bool = False
    """Every start is a little slower or faster than the others."""
    shape: LoadShape | None = None
    """The kind of load; None for those that other settings draw from."""
    loaded_machine: bool = False
    """The runs are in real time, on busy processors; what differs between starts is what the recordings assume."""


SETTINGS: tuple[Setting, ...] = (
    Setting(name="equal seeds", same_seed=True),
    Setting(name="other seeds", same_seed=False),
    Setting(name="starts differ, one each", same_seed=False, start_effects=True),
    Setting(name="starts differ, three each", same_seed=True, starts=3, start_effects=True),
    *(Setting(name=f"other seeds, {shape}", same_seed=False, shape=shape) for shape in LoadShape),
    Setting(name="equal seeds, real time, loaded machine", same_seed=True, loaded_machine=True),
)


@dataclass(kw_only=True)
class Tally:
    """What the comparisons of one setting said."""

    pairs: int = 0
    alarms: Counter[Family] = field(default_factory=Counter)
    """Pairs with a better or worse, by family of metrics."""
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    covered: Counter[Family] = field(default_factory=Counter)
    """Intervals that contain the true difference, 0."""
    intervals: Counter[Family] = field(default_factory=Counter)

    def add(self, comparison: Comparison) -> None:
        """Count the verdicts and intervals of one pair."""
        self.pairs += 1
        rows = [each for stage in comparison.stages for each in stage.metrics]
        self.alarms.update({each.family for each in rows if each.verdict in ALARMS})
        self.verdicts.update(each.verdict for each in rows)
        for each in rows:
            if each.found is not None:
                low, high = each.found.interval
                self.intervals[each.family] += 1
                self.covered[each.family] += low <= 0 <= high


def compare_pair(setting: Setting, load: DrawnLoad, random: Random) -> Comparison:
    """Compare two arms of one engine under one load."""
    arms: list[list[ArmRun]] = []
    seeds = [random.randrange(1 << 20) for _ in range(setting.starts)]
    for name in ("a", "b"):
        used = seeds if setting.same_seed else [random.randrange(1 << 20) for _ in seeds]
        slower = [start_effect(random) if setting.start_effects else 1.0 for _ in seeds]
        arms.append(arm([load.plan(seed, slower=each) for seed, each in zip(used, slower, strict=True)], name))
    spread = START_SPREAD if setting.start_effects else 0.0
    return compare(arms[0], arms[1], ComparisonOptions(start_spread=StartSpread.everywhere(spread)))


def compare_same(setting: Setting, *, seed: int, pairs: int) -> Tally:
    """Compare a number of pairs, each on an engine and a load of its own; in real time, MOST_PAIRS of one load."""
    tally = Tally()
    if setting.loaded_machine:
        for random in draws(seed, setting.name, min(pairs, MOST_PAIRS)):
            first, second = busy_pair(random.randrange(1 << 20))
            tally.add(compare([first], [second]))
        return tally
    for random in draws(seed, setting.name, pairs):
        tally.add(compare_pair(setting, draw_load(random, shape=setting.shape), random))
    return tally


def draws(seed: int, name: str, count: int) -> Iterator[Random]:
    """Yield one source of random numbers for each case."""
    return (Random(f"{seed}/{name}/{number}") for number in range(count))
