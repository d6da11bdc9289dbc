"""Which levels of a latency percentile curves over the load can have, given evidence at some of the loads.

A level is the logarithm of the percentile over its limit: 0 at the largest load within the objective. Along the
logarithm of the load it follows a line whose slope changes now and then, mostly by little, and it jumps here and there.
So lines, bends, plateaus and cliffs are all possible, and what is known at one load tells little of loads far from it.
Levels and slopes are discrete, hence the curves are the paths of a hidden Markov chain, whose probabilities the
forward-backward algorithm gives exactly (Rabiner 1989, "A tutorial on hidden Markov models", doi:10.1109/5.18626).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from servetop.core.arrays import FloatArray, IntArray

_LOWEST, _HIGHEST, _FINEST = -2.5, 1.5, 0.05
"""Levels: from a twelfth of the limit to 4.5 times it, and the distance from the limit up to which they are finest."""
LEVELS = _FINEST * np.sinh(np.linspace(math.asinh(_LOWEST / _FINEST), math.asinh(_HIGHEST / _FINEST), 140))
"""Possible levels, ascending; closest to each other at the limit."""
_BELOW = LEVELS <= 0
_SLOPES = np.array([-0.3, 0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6])
"""Possible slopes of the level over the logarithm of the load, ..."""
_SHARES = np.array([0.003, 0.02, 0.06, 0.13, 0.16, 0.17, 0.15, 0.12, 0.09, 0.06, 0.037])
"""... and how likely each is before anything was measured: only seldom a percentile falls as the load rises."""
_BENDS, _KINKS = 1.8, 1.2
"""Changes of the slope by little, and to any other slope, for each factor e of the load."""
_JUMPS = 0.3
"""Jumps for each factor e of the load."""
_JUMP_SIZES = np.geomspace(0.05, 4.0, 40)
"""Possible sizes of a jump, of equal probability."""
_FITS_NONE = 1e-9
"""Likelihood of a load whose level lies on no curve, relative to that of its best level."""
_LIKELY = 1e-3
"""Probability of an answer between two loads from which it counts whether that is a jump."""
_STEEP = 20.0
"""Slope from which a curve jumps as far as anybody can tell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Step:
    """What happens from one load to the next; states have shape (slopes, levels)."""

    slopes: FloatArray
    """Transition probabilities of the slope."""
    places: IntArray
    """Where levels go along their slopes: the lower neighbours, then the upper ones; shape (2, slopes, levels)."""
    parts: FloatArray
    """Parts that go to each neighbour."""
    jumps: float

    def forward(self, state: FloatArray) -> FloatArray:
        """Return the state at the next load."""
        drawn = self.slopes.T @ state
        return np.asarray(self.moved(drawn) + self.jumped(drawn))

    def moved(self, drawn: FloatArray) -> FloatArray:
        """Return what does not jump."""
        shared = (self.parts * drawn).ravel()
        found = np.bincount(self.places.ravel(), shared, minlength=drawn.size)
        return np.asarray((1 - self.jumps) * found.reshape(drawn.shape))

    def jumped(self, drawn: FloatArray) -> FloatArray:
        """Return what jumps; any slope may follow."""
        return np.asarray(self.jumps * (_SHARES[:, None] * (drawn.sum(axis=0) @ _jump_matrix())))

    def backward(self, later: FloatArray) -> FloatArray:
        """Return the likelihood of what follows, given the state at the load before."""
        low, high = later.ravel()[self.places]
        moved = self.parts[0] * low + self.parts[1] * high
        jumped = _jump_matrix() @ (_SHARES @ later)
        return np.asarray(self.slopes @ ((1 - self.jumps) * moved + self.jumps * jumped))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Crossing:
    """Two neighbouring loads between which a curve may cross the limit."""

    step: _Step
    state: FloatArray
    """That at the lower load given all evidence up to it."""
    later: FloatArray
    """The likelihood of the evidence at the upper load and beyond."""

    @property
    def jump(self) -> float:
        """Probability that a curve crosses the limit here, by a jump or as steeply as one."""
        step, state = self.step, self.state
        total = float((step.forward(state) * self.later).sum())
        drawn = np.where(_BELOW, step.slopes.T @ state, 0.0)
        above = np.where(_BELOW, 0.0, self.later)
        steep = (step.moved(drawn) * above)[_SLOPES >= _STEEP].sum() + (step.jumped(drawn) * above).sum()
        return float(steep) / total


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """Probabilities over all curves."""

    levels: FloatArray
    """Of each level at each load; shape (loads, levels), rows sum to 1."""
    within: FloatArray
    """Probability that a load is within the objective; shape (loads,)."""
    crossings: Sequence[_Crossing]
    """Where the limit may be crossed between two loads."""

    @cached_property
    def jump(self) -> float:
        """Probability that the curve crosses the limit by a jump."""
        return min(sum(each.jump for each in self.crossings), 1.0)


def curves(distances: Sequence[float], deviances: FloatArray) -> Curves:
    """Return the probabilities over curves.

    `distances` of the logarithms of neighbouring loads; `deviances` twice the negative log-likelihood of each level at
    each load, of shape (loads, levels), 0 where nothing is known. The first load is within the objective.
    """
    likelihoods = np.exp(-(deviances - deviances.min(axis=1, keepdims=True)) / 2) + _FITS_NONE
    steps = [_step(round(each, 9)) for each in distances]
    states, laters = _forward(steps, likelihoods), _backward(steps, likelihoods)
    levels = np.array([(state * later).sum(axis=0) for state, later in zip(states, laters, strict=True)])
    levels /= levels.sum(axis=1, keepdims=True)
    within = levels[:, _BELOW].sum(axis=1)
    within = np.maximum.accumulate(within[::-1])[::-1]  # the largest load counts
    crossings = [
        _Crossing(step=steps[place], state=states[place], later=laters[place + 1] * likelihoods[place + 1])
        for place in np.flatnonzero(-np.diff(within) > _LIKELY)
    ]
    return Curves(levels=levels, within=within, crossings=crossings)


def _forward(steps: Sequence[_Step], likelihoods: FloatArray) -> list[FloatArray]:
    """Return the probability of each state given all evidence up to its load."""
    first = np.where(LEVELS <= 0, np.gradient(LEVELS), 0.0)
    state = np.outer(_SHARES, first * likelihoods[0])
    states = [state / state.sum()]
    for step, likelihood in zip(steps, likelihoods[1:], strict=True):
        state = step.forward(states[-1]) * likelihood
        states.append(state / max(float(state.sum()), 1e-300))
    return states


def _backward(steps: Sequence[_Step], likelihoods: FloatArray) -> list[FloatArray]:
    """Return the likelihood of all evidence at larger loads for each state, but for a factor."""
    later = np.ones((_SLOPES.size, LEVELS.size))
    laters = [later]
    for step, likelihood in zip(reversed(steps), reversed(likelihoods[1:]), strict=True):
        later = step.backward(later * likelihood)
        laters.append(later / later.max())
    return laters[::-1]


@lru_cache(maxsize=16)
def _step(distance: float) -> _Step:
    """Return what happens along a distance of the logarithm of the load."""
    to = np.clip(LEVELS + _SLOPES[:, None] * distance, LEVELS[0], LEVELS[-1])
    low, part = _neighbours(to)
    rows = np.arange(_SLOPES.size)[:, None] * LEVELS.size
    return _Step(
        slopes=_slope_matrix(distance),
        places=np.array([rows + low, rows + low + 1]),
        parts=np.array([1 - part, part]),
        jumps=-math.expm1(-_JUMPS * distance),
    )


def _slope_matrix(distance: float) -> FloatArray:
    apart = np.abs(np.subtract.outer(np.arange(_SLOPES.size), np.arange(_SLOPES.size)))
    near = np.where(apart > 0, np.exp(-apart) * _SHARES, 0.0)
    near /= near.sum(axis=1, keepdims=True)
    changes = _BENDS + _KINKS
    changed = (_BENDS * near + _KINKS * _SHARES) / changes
    part = -math.expm1(-changes * distance)
    return np.asarray((1 - part) * np.eye(_SLOPES.size) + part * changed)


@lru_cache(maxsize=1)
def _jump_matrix() -> FloatArray:
    """Return the probabilities of levels after a jump; shape (levels, levels)."""
    found = np.zeros((LEVELS.size, LEVELS.size))
    places = np.arange(LEVELS.size)
    for size in _JUMP_SIZES:
        low, part = _neighbours(np.clip(LEVELS + size, LEVELS[0], LEVELS[-1]))
        found[places, low] += (1 - part) / _JUMP_SIZES.size
        found[places, low + 1] += part / _JUMP_SIZES.size
    return found


def _neighbours(to: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the place of the lower neighbour of each level, and the part that goes to the upper one."""
    low = np.clip(np.searchsorted(LEVELS, to, side="right") - 1, 0, LEVELS.size - 2)
    return low, (to - LEVELS[low]) / (LEVELS[low + 1] - LEVELS[low])
