"""Named distributions with parameters, as users write them: `sinusoid:period=60,amplitude=0.5`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from servetop.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class SpecParameter:
    """A numeric parameter of a distribution: its default (NaN for none) and its valid range."""

    default: float = math.nan
    low: float = 0.0
    """Exclusive, unless `low_included`."""
    high: float = 1e9
    low_included: bool = False

    def accepts(self, value: float) -> bool:
        """Whether the value lies in the range; NaN does not."""
        return (value > self.low or (self.low_included and value == self.low)) and value <= self.high

    @property
    def range_text(self) -> str:
        """The range, for an error message."""
        return f"{'from' if self.low_included else 'above'} {self.low:g} to {self.high:g}"


KnownDistributions = Mapping[str, Mapping[str, SpecParameter]]
"""The distributions that an option supports, by name, with the parameters of each."""


@dataclass(frozen=True, slots=True)
class DistributionSpec:
    """A distribution's name and the values of all of its parameters."""

    name: str
    numbers: Mapping[str, float]

    def __getitem__(self, key: str) -> float:
        return self.numbers[key]

    def get(self, key: str, default: float) -> float:
        """The value of a parameter; `default` when it was not given, or when the distribution has none of that name."""
        value = self.numbers.get(key, math.nan)
        return default if math.isnan(value) else value


def parse_distribution(text: str, known: KnownDistributions, *, option: str) -> DistributionSpec:
    """Parse `NAME` or `NAME:KEY=NUMBER,KEY=NUMBER`; UsageError, with the option's name, for anything else."""
    name, _, rest = text.strip().partition(":")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        raise UsageError(f"{option}: unknown {name!r}: {hint}")
    parameters = known[name]
    numbers = {key: parameter.default for key, parameter in parameters.items()}
    for part in filter(None, (each.strip() for each in rest.split(","))):
        key, _, number = part.partition("=")
        if key not in parameters:
            hint = f"{name} takes {', '.join(parameters)}" if parameters else f"{name} takes no numbers"
            raise UsageError(f"{option}: unknown {key!r} in {text!r}: {hint}")
        numbers[key] = _number(number, parameters[key], where=f"{option}: {part!r}")
    return DistributionSpec(name, numbers)


def _number(text: str, parameter: SpecParameter, *, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not parameter.accepts(value):
        raise UsageError(f"{where}: give a number {parameter.range_text}")
    return value
