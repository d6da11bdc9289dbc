"""Laws with numbers, as people write them: `sinusoid:period=60,amplitude=0.5`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from servetop.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class SpecParameter:
    """A number that a law takes: its default (NaN: the law knows better), and the range that makes sense."""

    default: float = math.nan
    low: float = 0.0
    """Not included, unless `low_included`."""
    high: float = 1e9
    low_included: bool = False

    def takes(self, value: float) -> bool:
        """Whether the value lies in the range; NaN does not."""
        return (value > self.low or (self.low_included and value == self.low)) and value <= self.high

    @property
    def words(self) -> str:
        """The range, for a message."""
        return f"{'from' if self.low_included else 'above'} {self.low:g} to {self.high:g}"


KnownDistributions = Mapping[str, Mapping[str, SpecParameter]]
"""The laws that an option knows, by name, and the settings of each."""


@dataclass(frozen=True, slots=True)
class DistributionSpec:
    """A law by name, with all of its numbers."""

    name: str
    numbers: Mapping[str, float]

    def __getitem__(self, key: str) -> float:
        return self.numbers[key]

    def or_else(self, key: str, default: float) -> float:
        """A number, or what the law says when none was written."""
        value = self.numbers[key]
        return default if math.isnan(value) else value


def parse_distribution(text: str, forms: KnownDistributions, *, option: str) -> DistributionSpec:
    """`NAME` or `NAME:KEY=NUMBER,KEY=NUMBER`; UsageError, with the option's name, for anything else."""
    name, _, rest = text.strip().partition(":")
    if name not in forms:
        near = difflib.get_close_matches(name, forms, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(forms)}"
        raise UsageError(f"{option}: unknown {name!r}: {hint}")
    settings = forms[name]
    numbers = {key: setting.default for key, setting in settings.items()}
    for part in filter(None, (each.strip() for each in rest.split(","))):
        key, _, number = part.partition("=")
        if key not in settings:
            hint = f"{name} takes {', '.join(settings)}" if settings else f"{name} takes no numbers"
            raise UsageError(f"{option}: unknown {key!r} in {text!r}: {hint}")
        numbers[key] = _number(number, settings[key], where=f"{option}: {part!r}")
    return DistributionSpec(name, numbers)


def _number(text: str, setting: SpecParameter, *, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not setting.takes(value):
        raise UsageError(f"{where}: give a number {setting.words}")
    return value
