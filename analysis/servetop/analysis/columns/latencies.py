"""TTFT, E2EL and TPOT of requests in seconds, from their times: arrays of shape (requests,), NaN for an unknown time.

Those of one request are properties of `RequestRecord`.
"""

from __future__ import annotations

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray


def times_to_first_token(start: FloatArray, first_token_at: FloatArray) -> FloatArray:
    """Return TTFT: first token - `start`, the time at which each request was sent (as felt by users: was due)."""
    return first_token_at - start


def end_to_end_latencies(start: FloatArray, done_at: FloatArray) -> FloatArray:
    """Return E2EL: last byte - `start`, the time at which each request was sent (as felt by users: was due)."""
    return done_at - start


def times_per_output_token(
    ttft: FloatArray, e2el: FloatArray, later_tokens: FloatArray, *, known: BoolArray | bool = True
) -> FloatArray:
    """Return TPOT: (E2EL - TTFT) / the tokens after those of the first chunk; NaN without any, or if not `known`."""
    return np.asarray((e2el - ttft) / np.where((later_tokens > 0) & known, later_tokens, np.nan))
