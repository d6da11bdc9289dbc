"""A bound on the hit rate of an engine that reports none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from servetop.analysis.prefix_cache.ttft_by_position import GROUP, MIN_GROUPS, PrefixUses

PROMPT, SHARED, BASE, PER_TOKEN = 1000, 600, 0.010, 1e-4


def uses(*, cached: float, prefixes: int = 60, requests: int = 400, base: float = BASE, seed: int = 1) -> PrefixUses:
    """Requests that find `cached` tokens, except first uses, behind a queue that grows, with noise."""
    random = np.random.default_rng(seed)
    picks = random.integers(prefixes, size=requests)
    first = np.zeros(requests, dtype=np.bool_)
    first[np.unique(picks, return_index=True)[1]] = True
    queue = np.linspace(0.0, 0.1, requests)
    work = PER_TOKEN * (PROMPT - np.where(first, 0, cached))
    ttft = base + queue + work * random.lognormal(0.0, 0.1, requests)
    return PrefixUses(sent=np.arange(requests) / 10, ttft=ttft, first=first)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_below_the_truth_and_near_it_where_the_prompt_takes_most_of_the_time(seed: int) -> None:
    measured = uses(cached=SHARED, base=0.0, seed=seed)
    truth = SHARED / PROMPT * float(1 - measured.first.mean())
    assert 0.5 * truth < measured.hit_rate_at_least() < truth


def test_a_cache_that_saves_nothing_has_the_bound_0() -> None:
    assert uses(cached=0.0).hit_rate_at_least() < 0.02


def test_with_few_prefixes_or_without_later_uses_there_is_no_bound() -> None:
    assert math.isnan(uses(cached=SHARED, prefixes=GROUP * MIN_GROUPS - 1).hit_rate_at_least())
    only = PrefixUses(sent=np.arange(40.0), ttft=np.ones(40), first=np.ones(40, dtype=np.bool_))
    assert math.isnan(only.hit_rate_at_least())
