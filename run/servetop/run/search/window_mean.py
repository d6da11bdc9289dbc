"""The mean of the samples of one load with its error, from the means of batches of requests that followed each other.

Requests that are due close together wait behind each other, so their latencies depend on each other; batches hardly do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray

_BATCHES = 8
_LEAST_ERROR = 0.01
"""No mean is known better than this, relative to it: a steadier server may change in the next minute, ..."""
_MEMORY = 0.5
"""... nor better than this / the time in latencies: the queue of the load before may still be seen."""
_INDEPENDENT = 4.0
"""Request latencies after which batches are independent: near saturation a queue keeps its length for longer."""
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365)
"""Standard errors to either side of an interval of 95 %, with 1 to 7 degrees of freedom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMean:
    """A mean of positive samples."""

    value: float
    """Seconds."""
    error: float
    """Standard error relative to the mean, which is that of its logarithm."""
    freedom: int
    """Degrees of freedom of the error, 1 to 7; 0 if there is no more than one batch and the error is not known."""

    def interval(self, dependence: float = 1.0) -> tuple[float, float]:
        """Return the 95 % interval in seconds; `dependence` is a factor of the variance. Without an error 0 to inf."""
        if not self.freedom:
            return 0.0, math.inf
        reach = _STUDENT[self.freedom - 1] * self.error * math.sqrt(dependence)
        return self.value * math.exp(-reach), self.value * math.exp(min(reach, 700.0))


def window_mean(counted: FloatArray, sums: FloatArray, *, latencies: float = math.inf) -> WindowMean | None:
    """Return the mean of the samples of requests in order of time; None if it is not above 0, or there is no sample.

    Both arrays have shape (requests,): the number of samples of each request, and their sum in seconds. `latencies` is
    the time in which they were due, in latencies of a request.
    """
    has = counted > 0
    counted, sums = counted[has], sums[has]
    if not sums.sum() > 0:
        return None
    value = float(sums.sum() / counted.sum())
    batches = min(_BATCHES, counted.size)
    if batches < 2:
        return WindowMean(value=value, error=math.inf, freedom=0)
    starts = np.linspace(0, counted.size, batches, endpoint=False).astype(np.intp)
    means = np.add.reduceat(sums, starts) / np.add.reduceat(counted, starts)
    dependence = max(1.0, _INDEPENDENT * _BATCHES / max(latencies, 1e-9))
    error = float(means.std(ddof=1)) * math.sqrt(dependence / batches) / value
    error = math.hypot(error, _LEAST_ERROR, _MEMORY / max(latencies, 1e-9))
    return WindowMean(value=value, error=error, freedom=batches - 1)
