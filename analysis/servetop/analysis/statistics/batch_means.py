"""The standard error of the mean of dependent observations, by batch means.

Consecutive observations are averaged in batches. The largest of the numbers of batches in BATCHES is used whose means
show no positive lag-1 autocorrelation (one-sided test at 10 %); what there is of it, corrected for its bias of
-1/batches, still enlarges the error. If even the fewest batches fail the test, the error is inflated as for a
first-order autoregressive series.

Requests that stay in the engine for long make its state change slowly. Of a series with the correlation exp(-t/τ), the
mean of a batch of length b has the variance 2τ/b · (1 - (1 - exp(-b/τ)) τ/b) times that of the series. Only the first
factor falls as 1/b, so short batches miss a part of the variance of the whole mean, too small in each pair of them to
be seen in so few. Where τ is known, what they miss is added.

Sources: Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30 (1982), who finds
10 to 30 batches best; Law, "Confidence intervals in discrete event simulation: a comparison of replication and batch
means", Naval Research Logistics Quarterly 24 (1977), for the bias; von Neumann, "Distribution of the ratio of the mean
square successive difference to the variance", Annals of Mathematical Statistics 12 (1941); Fishman, "Grouping
observations in digital simulation", Management Science 24 (1978).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray

SERIES = (32, 16, 8)
"""Lengths that a series may have, the best first."""
BATCHES = (16, 8)
"""Numbers of batches to try."""
MIN_OBSERVATIONS = 8
_Z = 1.2816
"""One-sided 10 % quantile of the normal distribution."""
_MAX_AUTOCORRELATION = 0.7


@dataclass(frozen=True, slots=True)
class StandardError:
    """The standard error of a mean, and its degrees of freedom."""

    value: float
    df: float


UNKNOWN = StandardError(math.inf, 1.0)


def standard_error(observations: FloatArray, *, correlation_time: float = 0.0) -> StandardError:
    """Return the error of the mean of a dependent series of shape (n,); infinite with fewer than 8 observations.

    `correlation_time` is the known τ of its slow part, in observations; 0 if there is none, or it is unknown.
    """
    if observations.size < MIN_OBSERVATIONS:
        return UNKNOWN
    for batches in BATCHES:
        if batches > observations.size:
            continue
        means = _batch_means(observations, batches)
        missed = _missed_variance(observations.size, batches, correlation_time)
        excess = _autocorrelation(means) + 1 / batches
        if excess <= _Z * math.sqrt((batches - 2) / (batches * batches - 1)):
            return StandardError(_error(means) * math.sqrt((1 + 2 * max(excess, 0.0)) * missed), batches - 1)
    rho = min(excess, _MAX_AUTOCORRELATION)
    seen = (1 + rho) / (1 - rho)
    return StandardError(_error(means) * math.sqrt(seen * missed), max((batches - 1) * (1 - rho), 1.0))


def _missed_variance(size: int, batches: int, correlation_time: float) -> float:
    """Return the variance of the mean as a multiple of what independent batches show; at least 1."""
    if not correlation_time > 0:
        return 1.0
    return _kept(size / correlation_time) / _kept(size / batches / correlation_time)


def _kept(length: float) -> float:
    """The variance of the mean of a series of some correlation times, as a share of its limit for long series."""
    return 1 + math.expm1(-length) / length


def _error(means: FloatArray) -> float:
    """Return the standard error of the mean of independent batches."""
    return float(means.std(ddof=1)) / math.sqrt(means.size)


def _batch_means(observations: FloatArray, batches: int) -> FloatArray:
    edges = np.linspace(0, observations.size, batches + 1).round().astype(np.int64)
    return np.add.reduceat(observations, edges[:-1]) / np.diff(edges)


def _autocorrelation(series: FloatArray) -> float:
    """Return the lag-1 autocorrelation; 0 for a constant series."""
    centred = series - series.mean()
    total = float(centred @ centred)
    return float(centred[:-1] @ centred[1:]) / total if total > 0 else 0.0
