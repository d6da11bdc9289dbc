"""The difference of two means in parts that the requests' own properties explain, and a rest with its interval.

The effect of each property is learnt within the runs (least squares with a mean of its own for each run), so what
differs between the runs for another reason is not attributed to it: Oaxaca and Blinder's decomposition with the
coefficients of the pooled runs. The intervals are those of blocks of successive requests, drawn again (bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from servetop.analysis.statistics.student_t import quantile
from servetop.core.arrays import FloatArray, IntArray

DRAWS = 400
_SEED = 20
_RIDGE = 1e-9
_MOST_BLOCKS, _FEWEST_BLOCKS = 40, 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredSample:
    """One run's requests: a value and a weight of each, and terms by name of shape (requests, terms)."""

    values: FloatArray
    weights: FloatArray
    terms: Mapping[str, FloatArray]

    @property
    def mean(self) -> float:
        """The weighted mean of the values."""
        return float(np.average(self.values, weights=self.weights))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfDifference:
    """What explains a part of a difference, in the unit of the values, with a 95 % interval."""

    effect: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedDifference:
    """The mean of B less the mean of A, in parts that add up to it."""

    parts: Mapping[str, PartOfDifference]
    rest: PartOfDifference
    inseparable: Mapping[str, str] = field(default_factory=dict)
    """By name: why the effect of a difference cannot be learnt from these requests."""


def adjusted_difference(a: MeasuredSample, b: MeasuredSample, *, draws: int = DRAWS) -> AdjustedDifference:
    """Explain the difference of two samples with the same terms, in the order of their names."""
    reasons = {name: reason for name in a.terms if (reason := _inseparable(a.terms[name], b.terms[name]))}
    kept = [name for name in a.terms if name not in reasons]
    columns = [name for name in kept for _ in range(a.terms[name].shape[1])]
    moments = [_block_moments(each, kept) for each in (a, b)]
    effects = _effects(*(each.sum(axis=0) for each in moments))
    drawn = _drawn(moments[0], moments[1], draws=draws)
    factor = quantile(0.975, min(len(each) for each in moments) - 1)

    def part(select: FloatArray) -> PartOfDifference:
        estimate = float(effects @ select)
        spread = factor * float(np.std(drawn @ select, ddof=1)) if draws > 1 else math.nan
        return PartOfDifference(effect=estimate, low=estimate - spread, high=estimate + spread)

    masks = {name: np.array([*(each == name for each in columns), False], float) for name in kept}
    rest = np.zeros(len(columns) + 1)
    rest[-1] = 1.0
    return AdjustedDifference(
        parts={name: part(mask) for name, mask in masks.items()}, rest=part(rest), inseparable=reasons
    )


def _inseparable(a: FloatArray, b: FloatArray) -> str:
    """Return why the first term of two runs cannot explain anything; empty if it can, or if it does not differ."""
    low, high = (np.array([each[:, 0].min(), each[:, 0].max()]) for each in (a, b))
    if high[0] > low[1] or low[0] > high[1]:
        return f"{_range(low)} in A and {_range(high)} in B share no value"
    return ""


def _range(ends: FloatArray) -> str:
    first, last = (f"{each:,.4g}" for each in ends)
    return first if first == last else f"{first} to {last}"


def _block_moments(sample: MeasuredSample, names: list[str]) -> FloatArray:
    """Return the weighted second moments of [1, terms, value] of each block, shape (blocks, terms + 2, terms + 2)."""
    size = sample.values.size
    design = np.column_stack([np.ones(size), *(sample.terms[name] for name in names), sample.values])
    blocks = min(max(size // 10, _FEWEST_BLOCKS), _MOST_BLOCKS, size)
    starts: IntArray = np.linspace(0, size, blocks, endpoint=False).astype(np.int64)
    products = design[:, :, None] * design[:, None, :] * sample.weights[:, None, None]
    return np.asarray(np.add.reduceat(products, starts, axis=0))


def _effects(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the effect of each term, and last the rest, from the moments of two runs.

    Shape (..., terms + 2, terms + 2) becomes (..., terms + 1). Terms that do not vary, or repeat others, have no slope
    of their own: the diagonal is raised by a part in 10⁹.
    """
    means, within = zip(*(_centred(each) for each in (a, b)), strict=True)
    pooled, shift = within[0] + within[1], means[1] - means[0]
    spread = np.sqrt(np.maximum(np.diagonal(pooled, axis1=-2, axis2=-1)[..., :-1], 0))
    spread = np.where(spread > 1e-6 * (1 + np.abs(means[0][..., :-1])), spread, np.inf)
    matrix = pooled[..., :-1, :-1] / (spread[..., :, None] * spread[..., None, :])
    matrix = matrix + (1 + _RIDGE - np.diagonal(matrix, axis1=-2, axis2=-1))[..., None] * np.eye(matrix.shape[-1])
    slopes = np.linalg.solve(matrix, (pooled[..., :-1, -1] / spread)[..., None])[..., 0] / spread
    effects = slopes * shift[..., :-1]
    rest = shift[..., -1] - effects.sum(axis=-1)
    return np.asarray(np.concatenate([effects, rest[..., None]], axis=-1))


def _centred(moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means of terms and value, and their second moments about these means."""
    total = moments[..., 0, 0]
    means = moments[..., 0, 1:] / total[..., None]
    return means, moments[..., 1:, 1:] / total[..., None, None] - means[..., :, None] * means[..., None, :]


def _drawn(a: FloatArray, b: FloatArray, *, draws: int) -> FloatArray:
    """Return the effects of samples whose blocks are drawn with replacement, shape (draws, terms + 1)."""
    random = np.random.default_rng(_SEED)
    counts = (random.multinomial(len(each), np.full(len(each), 1 / len(each)), draws) for each in (a, b))
    one, other = (np.tensordot(count, each, axes=1) for count, each in zip(counts, (a, b), strict=True))
    return _effects(one, other)
