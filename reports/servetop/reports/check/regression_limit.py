"""Limits of `--max-regression`, such as `output_throughput=2%` or `stages[2].p99_ttft_ms=50ms`."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from servetop.analysis.comparison.compared_metrics import METRICS, ComparedMetric, Scale, metric_named
from servetop.analysis.comparison.difference import Difference
from servetop.core.errors import UsageError
from servetop.core.units import MS_PER_S

_PATTERN = re.compile(
    r"\s*(?:stages\[(?P<stage>\d{1,6}|\*)\]\.)?(?:steady\.)?(?P<key>[A-Za-z_]\w*)\s*="
    r"\s*(?P<amount>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[^\d\s].*?)?\s*"
)
_PERCENT = "%"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionLimit:
    """How much worse a metric may be than in the baseline."""

    metric: ComparedMetric
    stage: int | None
    """Number of the only stage that it is for, as in the summary; None for all."""
    amount: float
    """A fraction of the baseline, or in the unit of the metric."""
    relative: bool

    @property
    def text(self) -> str:
        """The limit as a person writes it: `2 %`, `50 ms`."""
        unit = "%" if self.relative else self.metric.unit
        return f"{self.amount * (100 if self.relative else 1):g} {unit}"

    @property
    def key(self) -> str:
        """The metric with its stage: `stages[2].p99_ttft_ms`."""
        return self.metric.key if self.stage is None else f"stages[{self.stage}].{self.metric.key}"

    def on_scale_of(self, difference: Difference) -> float:
        """Return the limit on the scale of a difference."""
        level = abs(difference.a)
        if difference.scale is Scale.RELATIVE:
            return self.amount if self.relative else self.amount / level
        return self.amount * level if self.relative else self.amount

    def __str__(self) -> str:
        return f"{self.key}={self.text.replace(' ', '')}"


def parse_regression_limit(text: str) -> RegressionLimit:
    """Parse METRIC=LIMIT; UsageError with the valid keys or units."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise UsageError(f"--max-regression {text}: use METRIC=LIMIT, as in output_throughput=2% or p99_ttft_ms=50ms")
    metric = metric_named(match["key"])
    if metric is None:
        keys = [each.key for each in METRICS]
        close = difflib.get_close_matches(match["key"], keys, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(
            f"--max-regression {text}: {match['key']} cannot be tested: {hint}Metrics with a test are {', '.join(keys)}"
        )
    amount, relative = _amount(text, metric, float(match["amount"]), unit=match["unit"] or "")
    if relative and metric.higher_is_better and amount >= 1:
        raise UsageError(f"--max-regression {text}: no loss is larger than 100 %: use a smaller limit")
    stage = match["stage"]
    return RegressionLimit(
        metric=metric, stage=int(stage) if stage and stage != "*" else None, amount=amount, relative=relative
    )


def _amount(text: str, metric: ComparedMetric, amount: float, *, unit: str) -> tuple[float, bool]:
    """Return the amount as a fraction, or in the unit of the metric, and which of these it is."""
    if unit == _PERCENT:
        return amount / 100, True
    if unit == metric.unit or (not unit and metric.scale is Scale.ABSOLUTE):
        return amount, False
    if unit == "s" and metric.unit == "ms":
        return amount * MS_PER_S, False
    example = "0.02" if metric.scale is Scale.ABSOLUTE else f"5{metric.unit}"
    raise UsageError(f"--max-regression {text}: say of what: use {metric.key}=2% or {metric.key}={example}")
