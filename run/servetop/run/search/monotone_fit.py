"""The shares of missed samples that fit best if a larger load never misses less, on either side of a possible answer.

Nothing else is assumed of the curve (pool adjacent violators; Ayer et al. 1955). What such fits say of the load at
which a curve crosses a share is a likelihood ratio that stays below that of a normal error (Banerjee and Wellner 2001).
"""

from __future__ import annotations

import numpy as np

from servetop.core.arrays import FloatArray


def monotone_fits(events: FloatArray, trials: FloatArray) -> FloatArray:
    """Return the fits for each number of loads below the answer; shape (loads + 1, loads).

    Both arrays have shape (loads,) in ascending order of the load, and `trials` are above 0. Row `k` has the fit of the
    `k` least loads, and beside it that of the others on their own.
    """
    count = events.size
    found = np.zeros((count + 1, count))
    for below, fit in enumerate(_first_fits(events, trials)):
        found[below, :below] = fit
    for above, fit in enumerate(_first_fits((trials - events)[::-1], trials[::-1])):
        found[count - above, count - above :] = 1 - fit[::-1]
    return found


def _first_fits(events: FloatArray, trials: FloatArray) -> list[FloatArray]:
    """Return the fit of the first 0, 1, 2, ... loads on their own."""
    blocks: list[tuple[float, float, int]] = []  # events, trials and number of the loads with one share
    fits = [np.zeros(0)]
    for block in zip(events.tolist(), trials.tolist(), (1,) * events.size, strict=True):
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1], before[2] + block[2])
        blocks.append(block)
        fits.append(np.repeat([each[0] / each[1] for each in blocks], [each[2] for each in blocks]))
    return fits
