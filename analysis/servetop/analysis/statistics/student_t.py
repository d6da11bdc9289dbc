"""Student's t distribution: probabilities and quantiles for any positive degrees of freedom.

Source: Press et al., "Numerical Recipes", 3rd edition, section 6.4 (incomplete beta function by Lentz's continued
fraction); the quantile is found by bisection. Accurate to about ten digits.
"""

from __future__ import annotations

import functools
import math

_TINY = 1e-300
_ITERATIONS = 300


def upper_tail(t: float, df: float) -> float:
    """Return the probability of a value above `t`; NaN for NaN."""
    if math.isnan(t):
        return math.nan
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    if math.isinf(df):
        return 0.5 * math.erfc(t / math.sqrt(2))
    half = 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + t * t))
    return half if t >= 0 else 1 - half


@functools.cache
def quantile(probability: float, df: float) -> float:
    """Return the value below which a fraction `probability` (0.5 to below 1) lies."""
    low, high = 0.0, 1.0
    while upper_tail(high, df) > 1 - probability:
        low, high = high, high * 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, df) > 1 - probability else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _continued_fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _continued_fraction(b, a, 1 - x) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _ITERATIONS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + numerator * d)
            c = _away_from_zero(1 + numerator / c)
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
