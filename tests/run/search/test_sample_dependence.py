"""How far samples depend on each other: independent ones, blocks that are alike, and too few to tell."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.core.arrays import FloatArray
from servetop.run.search.sample_dependence import BlockCorrelation, block_correlation, dependence

LATENCY = 2.0


def correlation(shared: float, *, blocks: int = 400, size: int = 10, seed: int = 1) -> BlockCorrelation:
    """Blocks of one latency, whose samples have this share of their variance in common."""
    random = np.random.default_rng(seed)
    common = np.repeat(random.normal(size=blocks), size) * np.sqrt(shared)
    values = common + random.normal(size=blocks * size) * np.sqrt(1 - shared)
    found = block_correlation(due(blocks, size), np.exp(values), latency=LATENCY)
    assert found is not None
    return found


def due(blocks: int, size: int) -> FloatArray:
    return np.arange(blocks * size) * LATENCY / size


@pytest.mark.parametrize("shared", [0.0, 0.2, 0.6])
def test_the_correlation_is_the_share_of_the_variance_that_blocks_have_in_common(shared: float) -> None:
    assert correlation(shared).correlation == pytest.approx(shared, abs=0.1)  # ranks show a little less
    assert correlation(shared).freedom == 399


def test_samples_of_a_block_that_are_all_alike_are_one() -> None:
    values = np.repeat(np.random.default_rng(2).normal(size=40), 10)
    found = block_correlation(due(40, 10), values, latency=LATENCY)
    assert found is not None
    assert found.correlation == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("blocks", "size", "latency"), [(2, 10, LATENCY), (10, 1, LATENCY), (10, 10, float("nan"))])
def test_too_few_blocks_too_small_ones_or_no_latency_tell_nothing(blocks: int, size: int, latency: float) -> None:
    assert block_correlation(due(blocks, size), np.ones(blocks * size), latency=latency) is None


def test_without_evidence_all_samples_of_a_latency_are_alike() -> None:
    assert dependence([]) == 1.0
    assert dependence([BlockCorrelation(1.0, 40.0)]) == 1.0


def test_many_blocks_without_correlation_leave_little_dependence() -> None:
    few, many = (dependence([BlockCorrelation(0.0, freedom)]) for freedom in (4.0, 400.0))
    assert few == pytest.approx(0.5)
    assert many < 0.02
    assert dependence([BlockCorrelation(-0.2, 400.0)]) == 0.0
