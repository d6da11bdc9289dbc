"""Whether the requests of two runs have other token counts, although the same lengths were configured."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from servetop.analysis.confounding.conditions import RunConditions
from servetop.analysis.confounding.confounder import ALL_METRICS, Confounder, ConfounderKind
from servetop.analysis.statistics.dependent_errors import effective_size, standard_error
from servetop.core.arrays import FloatArray
from servetop.core.config import RunConfig, WorkloadConfig

PAIRED_LIMIT = 0.01
"""Relative difference of means over the same requests that matters; equal requests have equal counts."""
UNPAIRED_LIMIT = 0.02
"""The same for different requests."""
STANDARD_ERRORS = 4.5
"""Differences within this many standard errors are chance: 7 in a million pairs, and more with few slices."""
SHAPE_LIMIT = 0.05
"""Largest distance between two distributions (Kolmogorov-Smirnov) that does not matter."""
SHAPE_CHANCE = 2.5
"""The distance times the root of the effective size is above this in 7 of a million pairs (2·exp(-2·2.5²))."""
MIN_PAIRS = 30
_OTHER_FIELDS = {
    "arrivals",
    "burstiness",
    "time_scale",
    "trace_rate",
    "jitter",
    "think_time",
    "headers",
    "header_env",
    "stream",
    "timeout",
    "store_texts",
    "skip_bad_rows",
}
"""Fields of WorkloadConfig that do not decide how long requests are, or what they have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthDifference:
    """The mean token counts of two runs, and whether they differ by more than chance."""

    a: float
    b: float
    differs: bool
    shape: float = 0.0
    """Distance between the distributions, 0-1, if that alone is beyond chance."""

    @property
    def relative(self) -> float:
        """B / A - 1; NaN if A is 0."""
        return self.b / self.a - 1 if self.a else math.nan

    def text(self, what: str) -> str:
        """Describe the difference in a phrase."""
        if abs(self.relative) < UNPAIRED_LIMIT and self.shape:
            return f"{what} have another distribution (their shares differ by up to {self.shape:.0%})"
        return f"{what} have {self.b:,.0f} tokens in B and {self.a:,.0f} in A ({self.relative:+.1%})"


def same_requests_configured(a: RunConfig, b: RunConfig) -> bool:
    """Whether two runs were configured to send requests of the same kind."""
    names = {each.name for each in fields(WorkloadConfig)} - _OTHER_FIELDS
    return all(getattr(a.workload, name) == getattr(b.workload, name) for name in names)


def lengths_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Compare prompts and outputs: request by request with equal seeds, else their means and distributions."""
    if not same_requests_configured(a.config, b.config):
        return None
    prompt, output = (length_difference(a, b, name) for name in ("prompt", "output"))
    phrases = [
        difference.text(what)
        for difference, what in ((prompt, "prompts"), (output, "outputs"))
        if difference is not None and difference.differs
    ]
    if not phrases or prompt is None or output is None:
        return None
    return Confounder(
        kind=ConfounderKind.LENGTHS,
        text=f"{' and '.join(phrases)}, although the same lengths are configured",
        evidence={"prompt tokens": (prompt.a, prompt.b), "output tokens": (output.a, output.b)},
        metrics=ALL_METRICS,
    )


def length_difference(a: RunConditions, b: RunConditions, name: str) -> LengthDifference | None:
    """Compare `prompt` or `output` tokens; None with too few requests."""
    left, right = getattr(a.lengths, name), getattr(b.lengths, name)
    if min(left.size, right.size) < MIN_PAIRS:
        return None
    if a.config.seed == b.config.seed:
        _, of_a, of_b = np.intersect1d(a.lengths.ids, b.lengths.ids, assume_unique=False, return_indices=True)
        if of_a.size >= MIN_PAIRS:
            return _paired(left[of_a], right[of_b])
    return _unpaired(left, right)


def _paired(left: FloatArray, right: FloatArray) -> LengthDifference:
    steps = right - left
    error, mean = standard_error(steps), float(steps.mean())
    margin = max(PAIRED_LIMIT * float(left.mean()), STANDARD_ERRORS * (0.0 if math.isnan(error) else error))
    shape = _shape(left, right)
    return LengthDifference(
        a=float(left.mean()), b=float(right.mean()), differs=abs(mean) > margin or shape > 0, shape=shape
    )


def _unpaired(left: FloatArray, right: FloatArray) -> LengthDifference:
    means = float(left.mean()), float(right.mean())
    error = math.hypot(_error(left), _error(right))
    margin = max(UNPAIRED_LIMIT * means[0], STANDARD_ERRORS * error)
    shape = _shape(left, right)
    return LengthDifference(a=means[0], b=means[1], differs=abs(means[1] - means[0]) > margin or shape > 0, shape=shape)


def _error(values: FloatArray) -> float:
    error = standard_error(values)
    return float(values.std(ddof=1)) / math.sqrt(values.size) if math.isnan(error) else error


def _shape(left: FloatArray, right: FloatArray) -> float:
    """Return the distance between two distributions; 0 if it is within chance, or does not matter."""
    distance = _distance(np.sort(left).astype(np.float64), np.sort(right).astype(np.float64))
    sizes = effective_size(left), effective_size(right)
    chance = SHAPE_CHANCE / math.sqrt(sizes[0] * sizes[1] / (sizes[0] + sizes[1]))
    return distance if distance > max(SHAPE_LIMIT, chance) else 0.0


def _distance(left: FloatArray, right: FloatArray) -> float:
    """Return the largest difference between two empirical distribution functions of sorted values."""
    values = np.concatenate([left, right])
    below = (np.searchsorted(each, values, side="right") / each.size for each in (left, right))
    return float(np.abs(np.subtract(*below)).max())
