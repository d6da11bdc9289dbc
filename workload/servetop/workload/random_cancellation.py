"""Selects the requests that a client cancels mid-stream (`cancel_fraction`), and after how many tokens."""

from __future__ import annotations

import numpy as np

_STREAM = 0xCA9


def tokens_before_cancel(fraction: float, *, seed: int, number: int, output_tokens: int) -> int | None:
    """Output tokens after which request `number` of a run is cancelled; None: it is not cancelled.

    The same for any number of sender processes.
    """
    if not fraction:
        return None
    generator = np.random.default_rng((seed, _STREAM, number))
    return int(generator.integers(1, max(2, output_tokens))) if generator.random() < fraction else None
