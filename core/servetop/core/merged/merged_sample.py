"""A sample of an engine that stands for several, and the samples that it stands for.

Counters and times rise evenly from the sample before. Without it, counters are held and the samples are spread over the
seconds of a merged row, or those since the run's origin if they are fewer. A gauge has its maximum once, in the middle,
and otherwise the value with which its mean is the recorded one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servetop.core.events import EngineSample

MERGED_SECONDS = 10.0
"""Time that a merged row stands for; rows are merged within multiples of it since the run's origin."""
TIMES = ("scrape_start", "scrape_end")
RISING = (
    *TIMES,
    *(
        each.name
        for each in dataclasses.fields(EngineSample)
        if each.name.endswith("_total") and each.name != "kv_blocks_total"
    ),
)
"""Fields that rise from one sample to the next: times and counters."""
CONTINUOUS = frozenset(name for name in RISING if not name.endswith("_total") or "_seconds_" in name)
"""Those of them that are seconds; the others count something, in whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergedSample:
    """The last of `count` samples of one server, with the means of their gauges."""

    sample: EngineSample
    count: int
    before: EngineSample | None = None
    """The sample before the first of them; None if it is unknown or much older, so that counters are held."""
    peaks: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The maximum of a gauge, by its name."""

    def samples(self) -> list[EngineSample]:
        """Return the samples that it stands for, in order of time."""
        fields = {each.name: getattr(self.sample, each.name) for each in dataclasses.fields(self.sample)}
        steps = self._steps(fields)
        for name, peak in self.peaks.items():
            fields[name] = without_peak(fields[name], peak, self.count)
        return [self._sample(number, fields, steps) for number in range(1, self.count + 1)]

    def _sample(self, number: int, fields: dict[str, Any], steps: Mapping[str, float]) -> EngineSample:
        rest = 1 - number / self.count
        changed = {name: fields[name] - min(_remaining(name, step * rest), step) for name, step in steps.items()}
        if self.before is None:
            changed = {name: fields[name] - min(MERGED_SECONDS, fields[name]) * rest for name in TIMES}
        if number == peak_position(self.count):
            changed |= self.peaks
        return type(self.sample)(**(fields | changed))

    def _steps(self, fields: Mapping[str, Any]) -> dict[str, float]:
        """Return how much each rising field increased since the sample before; none that is unknown or fell."""
        steps = {}
        for name in RISING if self.before is not None else ():
            before, value = getattr(self.before, name), fields[name]
            if before is not None and value is not None and value > before:
                steps[name] = value - before
        return steps


def peak_position(count: int) -> int:
    """Return which of `count` samples has the maxima of the gauges, from 1."""
    return (count + 1) // 2


def without_peak(mean: float, peak: float, count: int) -> float:
    """Return the value of all samples but one, if that one has the maximum; at least 0, at most the maximum."""
    return min(max((mean * count - peak) / (count - 1), 0.0), peak)


def _remaining(name: str, rest: float) -> float:
    """Return what a counter still lacks: a whole number where it counts, so that a rare event remains one event."""
    return rest if name in CONTINUOUS else float(math.ceil(rest - 1e-9))
