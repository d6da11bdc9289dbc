"""Where the largest load lies at which a mean is within its limit, given the mean that every load showed.

Near the answer the logarithm of the mean is a linear function of the logarithm of the load with an unknown slope; a
load farther away says only on which side of it the answer is. Errors follow Student's t, as few batches make them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.run.search.load_posterior import LoadPosterior
from servetop.run.search.load_windows import LoadWindow, Trend

_SLOPES = np.geomspace(0.1, 100.0, 28)
"""Slopes of the logarithm of the mean over that of the load: 0.2 of a TPOT far from saturation, 50 of a TTFT at it."""
_USUAL_SLOPE, _SLOPE_SPREAD = 2.0, 1.3
"""Median and standard deviation (of the logarithm) of slopes before anything was measured."""
_NEAR = 0.15
"""Relative distance of a load within which the slope is taken as constant."""
_FLATTEST = 0.25
"""A curve is nowhere flatter than this slope, with which far loads are compared, ..."""
_LEAST_RISE = 0.1
"""... up to this logarithm of mean / limit: ITL hardly depends on small loads."""
_BEYOND = 1e4
"""Factor beyond the possible loads up to which a curve may cross the limit where nothing else fits."""
_RISING = 0.25
"""The error of a mean that is beyond its limit and still rises is at most this share of the distance to the limit."""
_FAR = 40
"""Number of loads beyond the possible ones, at either side."""
MEAN_DEPENDENCE = 2.0
"""Factor of the variance of means: batches depend on each other too (set on servers and seeds below 200)."""


def mean_posterior(windows: Sequence[LoadWindow], *, limit: float, loads: FloatArray) -> LoadPosterior:
    """Return the posterior over ascending loads; `limit` in seconds."""
    far = np.geomspace(1.0, _BEYOND, _FAR + 1)[1:]
    everywhere = np.concatenate((loads[0] / far, loads, loads[-1] * far))
    costs = np.zeros((everywhere.size, _SLOPES.size))
    for window in windows:
        if window.mean is not None and window.mean.freedom:
            _add_deviance(costs, window, math.log(window.mean.value / limit), everywhere)
    misfit = float(costs.min()) / max(len(windows) - 2, 1)  # the answer is less sure where no slope fits
    costs = costs[far.size : far.size + loads.size] / max(1.0, misfit)
    costs += (np.log(_SLOPES / _USUAL_SLOPE) / _SLOPE_SPREAD) ** 2
    joint = np.exp(-(costs - costs.min()) / 2)
    weights = joint.sum(axis=1) * np.gradient(np.log(loads))
    slope = float((joint.sum(axis=0) * _SLOPES).sum() / joint.sum())
    return LoadPosterior(loads=loads, weights=weights / weights.sum(), slope=slope)


def _add_deviance(costs: FloatArray, window: LoadWindow, beyond: float, loads: FloatArray) -> None:
    """Add twice the log-likelihood ratio to a perfect fit; `beyond` is the logarithm of mean / limit."""
    if (window.trend is Trend.RISING and beyond <= 0) or (window.trend is Trend.FALLING and beyond > 0):
        return
    distance = np.log(window.load / loads)
    near = np.exp(-((distance / _NEAR) ** 2)) if window.trend is Trend.SETTLED else np.zeros(distance.shape)
    fitted = _deviance(window, beyond - distance[:, None] * _SLOPES[None, :], beyond)
    least = np.clip(_FLATTEST * distance, -_LEAST_RISE, _LEAST_RISE)
    contradicts = np.where(distance > 0, beyond < least, beyond > least)
    sided = np.where(contradicts, _deviance(window, beyond - least, beyond), 0.0)
    costs += near[:, None] * fitted + ((1 - near) * sided)[:, None]


def _deviance(window: LoadWindow, apart: FloatArray, beyond: float) -> FloatArray:
    """Return the deviance (Student's t) of differences between the logarithm of the mean and what is expected."""
    assert window.mean is not None
    freedom, error = window.mean.freedom, window.mean.error
    if window.trend is Trend.RISING:
        error = min(error, _RISING * beyond)
    return np.asarray((freedom + 1) * np.log1p(apart**2 / (error**2 * MEAN_DEPENDENCE * freedom)))
