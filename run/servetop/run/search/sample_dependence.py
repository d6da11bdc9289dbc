"""How far the samples of a load depend on each other, by the ranks of their latencies.

Requests that are served together share what their latency depends on. Blocks of one latency of a request that differ in
their mean rank by more than chance tell how much: the intraclass correlation of a one-way analysis of variance, which
is 0 of independent samples and 1 if all samples of a block are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray

_LEAST_BLOCKS, _LEAST_SIZE = 3, 1.5
"""Blocks of a load that are compared at least, and samples of each of them in the mean."""
_USUAL_WEIGHT = 4.0
"""Before anything was measured samples are taken as alike, as if this number of blocks had shown it."""
_LONGER = 3.0
"""Factor of the correlation, as some of what is shared lasts for longer than one block."""


@dataclass(frozen=True, slots=True)
class BlockCorrelation:
    """How far the samples of one load are alike within blocks."""

    correlation: float
    """Intraclass correlation; less than 0 if blocks differ by less than chance."""
    freedom: float
    """Degrees of freedom: blocks less one."""


def block_correlation(due: FloatArray, latencies: FloatArray, *, latency: float) -> BlockCorrelation | None:
    """Return the correlation of requests that ended, in blocks of `latency` seconds; None if they are too few.

    `due` and `latencies` have the shape (requests,). Equal latencies rank in order of time, so they count as alike.
    """
    if not latency > 0 or due.size < _LEAST_BLOCKS * _LEAST_SIZE:
        return None
    _, block, sizes = np.unique((due / latency).astype(np.intp), return_inverse=True, return_counts=True)
    if sizes.size < _LEAST_BLOCKS or due.size < _LEAST_SIZE * sizes.size:
        return None
    ranks = np.empty(due.size)
    ranks[np.argsort(latencies, kind="stable")] = (np.arange(due.size) + 0.5) / due.size
    means = np.bincount(block, ranks) / sizes
    between = float((sizes * (means - 0.5) ** 2).sum()) / (sizes.size - 1)
    within = float(((ranks - means[block]) ** 2).sum()) / max(due.size - sizes.size, 1)
    size = (due.size - float((sizes**2).sum()) / due.size) / (sizes.size - 1)
    shared = (between - within) / size
    return BlockCorrelation(shared / max(shared + within, 1e-9), float(sizes.size - 1))


def dependence(found: Sequence[BlockCorrelation]) -> float:
    """Return how far samples within one latency are alike, 0 to 1, by the correlations of several loads."""
    freedom = sum(each.freedom for each in found)
    seen = _LONGER * sum(each.correlation * each.freedom for each in found)
    return float(np.clip((_USUAL_WEIGHT + seen) / (_USUAL_WEIGHT + freedom), 0.0, 1.0))
