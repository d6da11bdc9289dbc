"""How well curves of missed samples over the load fit what the loads showed, for each load at which they may cross the
allowed share.

A curve has a shape near the answer only; a load farther away says only on which side of it the answer is, and that a
larger load never misses less. There, what a monotone curve cannot explain counts for every answer alike, so that noise
near one answer is no evidence for another one far from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.run.search.monotone_fit import monotone_fits

SLOPES = np.geomspace(3.0, 300.0, 39)
"""Slopes of the logit over the logarithm of the load, close enough that many samples do not fall between two."""
_FLATTEST = 4.0
"""A curve is nowhere flatter than this slope above the answer, with which far loads are compared."""
_PLATEAU, _MOST_PLATEAU = 0.1, 0.999
"""The share of missed samples where a plateau above the answer begins, or twice the allowed share; at most."""
_BEFORE_JUMP, _AFTER_JUMP = 0.5, 0.5
"""A jump rises from no more than this part of the allowed share to this share of missed samples at least."""
_NEAR = 0.15
"""Relative distance of a load within which the shape of a curve is taken as true."""
_NEGLIGIBLE = 1e-4
"""Weight from which the curve near a load counts at all."""
_BUSY = 0.9
"""Part of what an engine can complete that the largest load within an objective usually is."""
_RELAXATION, _LONGEST_RELAXATION = 2.0, 60.0
"""Requests after which a queue has forgotten how it began: this / ln(part)² at a part of what the engine can complete,
and at most. With exponential times it is 1 / (1 - √part)², which is about 4 / ln(part)² (Morse 1955); both were set on
servers and seeds apart from the judgement's.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class ShownLoads:
    """The samples of each load; arrays of shape (loads,)."""

    at: FloatArray
    """The loads, ascending."""
    events: FloatArray
    """Independent samples that missed the limit."""
    trials: FloatArray
    """Independent samples, above 0."""
    requests: FloatArray
    """Requests that were due; infinity where each load is at its level at once, as in a closed loop."""

    @cached_property
    def fits(self) -> FloatArray:
        """The monotone fits for each number of loads below the answer; shape (loads + 1, loads)."""
        return monotone_fits(self.events, self.trials)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveDeviance:
    """Twice the log-likelihood ratio to a perfect fit for each possible answer."""

    curve: FloatArray
    """Of curves with a shape near the answer; shape (answers, slopes), or (answers, 1) if they have no slope."""
    monotone: FloatArray
    """That of the best monotone curve; shape (answers,)."""


def rising_deviances(
    shown: ShownLoads, answers: FloatArray, *, allowed: float, plateaus: Sequence[float | None] = (None,)
) -> list[CurveDeviance]:
    """Return the deviance of curves that rise with a slope; with a plateau they may stay little above the answer.

    Each of `plateaus` is the slope of the logit along one, 0 if it is flat, None for curves without one.
    """
    distance = np.log(shown.at[:, None] / answers)
    known, above = _known(shown, distance), distance > 0
    leasts = [_least(allowed, distance, plateau=plateau) for plateau in plateaus]
    fars = [known * _binomial(shown, _held(shown, answers, most=allowed, least=least, above=above)) for least in leasts]
    monotones = [far.sum(axis=0) for far in fars]
    curves = [np.repeat(monotone[:, None], SLOPES.size, axis=1) for monotone in monotones]
    for place, apart in enumerate(distance):
        near = _nearness(apart)
        close = np.flatnonzero(near)
        share = _logistic(allowed, apart[close, None] * SLOPES)
        fitted = known[place, close, None] * _deviance(shown.events[place], shown.trials[place], share)
        for curve, far in zip(curves, fars, strict=True):
            curve[close] += near[close, None] * (fitted - far[place, close, None])
    return [CurveDeviance(curve=curve, monotone=each) for curve, each in zip(curves, monotones, strict=True)]


def _least(allowed: float, distance: FloatArray, *, plateau: float | None) -> FloatArray:
    """Return the least share that loads above the answer miss; shape (loads, answers)."""
    beyond = np.maximum(distance, 0.0)
    least = _logistic(allowed, beyond * _FLATTEST)
    if plateau is None:
        return least
    most = min(max(2 * allowed, _PLATEAU), _MOST_PLATEAU)
    return np.minimum(least, _logistic(most, beyond * plateau))


def monotone_deviance(shown: ShownLoads, answers: FloatArray, *, allowed: float) -> FloatArray:
    """Return the deviance of the best curve that never falls and crosses the allowed share at each possible answer.

    Shape (answers,).
    """
    least = np.full((shown.at.size, answers.size), allowed)
    above = shown.at[:, None] > answers
    return np.asarray(_binomial(shown, _held(shown, answers, most=allowed, least=least, above=above)).sum(axis=0))


def jump_deviance(shown: ShownLoads, answers: FloatArray, *, allowed: float) -> CurveDeviance:
    """Return the deviance of curves that jump at the answer, with one share below the jump and another above it."""
    distance = np.log(shown.at[:, None] / answers)
    above, most, least = distance > 0, _BEFORE_JUMP * allowed, np.full(distance.shape, _AFTER_JUMP)
    known = _known(shown, distance)
    far = known * _binomial(shown, _held(shown, answers, most=most, least=least, above=above))
    near = _nearness(distance)
    low, high = (_pooled(shown, near * side) for side in (~above, above))
    fitted = known * _binomial(shown, np.where(above, np.maximum(high, _AFTER_JUMP), np.minimum(low, most)))
    monotone = far.sum(axis=0)
    return CurveDeviance(curve=(monotone + (near * (fitted - far)).sum(axis=0))[:, None], monotone=monotone)


def _held(shown: ShownLoads, answers: FloatArray, *, most: float, least: FloatArray, above: BoolArray) -> FloatArray:
    """Return the monotone fits, held at `most` for loads up to the answer, and at `least` above it."""
    fits = shown.fits[np.searchsorted(shown.at, answers, side="right")].T
    return np.where(above, np.maximum(fits, least), np.minimum(fits, most))


def _known(shown: ShownLoads, distance: FloatArray) -> FloatArray:
    """Return how much each load counts for each answer: less where its queue would need longer to show its level.

    It counts one independent sample at least where anything was missed: that was an event.
    """
    part = np.log(_BUSY) + distance
    needed = np.minimum(_RELAXATION / np.maximum(part**2, 1e-12), _LONGEST_RELAXATION)
    trials = np.minimum(shown.trials[:, None], shown.requests[:, None] / needed)
    trials = np.maximum(trials, np.minimum(shown.events, 1.0)[:, None])
    return np.asarray(np.minimum(trials / shown.trials[:, None], 1.0))


def _nearness(distance: FloatArray) -> FloatArray:
    """Return how much the shape of a curve counts at loads that far from the answer: 1 at it, and 0 far away."""
    near = np.exp(-((distance / _NEAR) ** 2))
    return np.where(near > _NEGLIGIBLE, near, 0.0)


def _pooled(shown: ShownLoads, weights: FloatArray) -> FloatArray:
    """Return the share that all loads missed together, for weights of shape (loads, answers)."""
    trials = (weights * shown.trials[:, None]).sum(axis=0)
    return np.asarray((weights * shown.events[:, None]).sum(axis=0) / np.maximum(trials, 1e-12))


def _logistic(allowed: float, shift: FloatArray) -> FloatArray:
    """Return the share that misses the limit where the logit is `shift` above that of the allowed share."""
    logit = math.log(allowed / (1 - allowed)) + np.clip(shift, -40, 40)
    return np.asarray(1 / (1 + np.exp(-logit)))


def _binomial(shown: ShownLoads, share: FloatArray) -> FloatArray:
    """Return the deviance of loads from expected shares; shape (loads, answers)."""
    return _deviance(shown.events[:, None], shown.trials[:, None], share)


def _deviance(events: FloatArray, trials: FloatArray, share: FloatArray) -> FloatArray:
    share = np.clip(share, 1e-12, 1 - 1e-12)
    seen = events / trials
    hit = events * np.log(np.maximum(seen, 1e-300) / share)
    rest = (trials - events) * np.log(np.maximum(1 - seen, 1e-300) / (1 - share))
    return np.asarray(2 * (hit + rest))
