"""Other token counts are found request by request with equal seeds, else beyond chance, and only if not configured."""

from __future__ import annotations

import numpy as np
import pytest

from servetop.analysis.confounding.lengths_rule import lengths_confounder
from servetop.core.config import WorkloadConfig
from tests.analysis.measured_conditions import conditions, lengths

RANDOM = np.random.default_rng(1)
DRAWN = RANDOM.lognormal(5.0, 0.6, 500).round()


def test_equal_requests_with_other_token_counts_are_found_even_if_the_difference_is_small() -> None:
    a, b = conditions(lengths=lengths(DRAWN)), conditions(lengths=lengths((DRAWN * 1.02).round()))
    found = lengths_confounder(a, b)
    assert found is not None
    assert "prompts have" in found.text
    assert "outputs" not in found.text
    assert found.evidence["output tokens"] == (64.0, 64.0)


def test_requests_that_only_one_run_completed_are_not_compared() -> None:
    """The longest ones of B did not finish, so its mean is lower."""
    short = np.flatnonzero(DRAWN < 200)
    part = lengths(DRAWN[short])
    object.__setattr__(part, "ids", short)
    assert lengths_confounder(conditions(lengths=lengths(DRAWN)), conditions(lengths=part)) is None


@pytest.mark.parametrize(("factor", "named"), [(1.0, 0), (1.4, 20)])
def test_other_requests_differ_by_chance_and_only_more_is_named(factor: float, named: int) -> None:
    pairs = [
        [
            conditions(seed=seed, lengths=lengths(scale * RANDOM.lognormal(5.0, 0.6, 500)))
            for seed, scale in ((1, 1.0), (2, factor))
        ]
        for _ in range(20)
    ]
    assert sum(lengths_confounder(a, b) is not None for a, b in pairs) == named


def test_correlated_lengths_need_a_larger_difference_than_independent_ones() -> None:
    """Blocks of 50 similar requests, as from a sorted dataset, tell as much as 16 independent ones."""
    alone = [lengths(RANDOM.normal(100 + shift, 20, 800)) for shift in (0, 8)]
    blocks = [lengths(np.repeat(RANDOM.normal(100 + shift, 20, 16), 50) + RANDOM.normal(0, 1, 800)) for shift in (0, 8)]
    independent, dependent = (
        lengths_confounder(conditions(seed=1, lengths=a), conditions(seed=2, lengths=b)) for a, b in (alone, blocks)
    )
    assert independent is not None
    assert dependent is None


def test_another_distribution_with_the_same_mean_is_named() -> None:
    fixed, spread = np.full(400, 100.0), RANDOM.uniform(50, 150, 400)
    found = lengths_confounder(
        conditions(seed=1, lengths=lengths(fixed)), conditions(seed=2, lengths=lengths(spread - spread.mean() + 100))
    )
    assert found is not None
    assert "another distribution" in found.text


def test_lengths_that_were_configured_differently_are_not_named() -> None:
    longer = lengths([256] * 400)
    other = conditions(workload=WorkloadConfig(input_len=256), lengths=longer)
    assert lengths_confounder(conditions(), other) is None
    burstier = conditions(workload=WorkloadConfig(burstiness=0.5), lengths=longer)
    assert lengths_confounder(conditions(), burstier) is not None


def test_too_few_requests_are_not_compared() -> None:
    few = conditions(lengths=lengths([200] * 10))
    assert lengths_confounder(conditions(), few) is None
