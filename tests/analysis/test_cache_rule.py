"""A warm cache is found at the start of a run, where nothing can have been evicted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from servetop.analysis.confounding.cache_rule import cache_confounder
from servetop.analysis.confounding.conditions import CacheCounts, ReplicaCounts, RunConditions
from servetop.analysis.trust.cache_check import CacheCheck
from servetop.core.config import WorkloadConfig
from tests.analysis.measured_conditions import conditions, lengths

SCRAPES = 64
TOKENS = 1280.0
"""Prompt tokens between two scrapes: ten requests."""


def _cache(first: float, later: float, *, capacity: float = 17 * TOKENS) -> CacheCounts:
    """Hit rates of the first quarter of the run, which the cache can hold, and of the rest, with a little variation."""
    rates = np.where(np.arange(SCRAPES) < SCRAPES // 4, first, later) + np.tile([-0.01, 0.01], SCRAPES // 2)
    queries = np.full(SCRAPES, TOKENS)
    return CacheCounts(hits=rates * queries, queries=queries, generated=0.1 * queries, capacity=capacity)


def _run(first: float, later: float, *, seed: int = 1) -> RunConditions:
    return conditions(seed=seed, cache=_cache(first, later))


def test_a_higher_hit_rate_from_the_start_is_a_warm_cache_whatever_else_differs() -> None:
    found = cache_confounder(_run(0.3, 0.5), _run(0.9, 0.9, seed=2), explained=True)
    assert found is not None
    assert "the cache of B held prompts of this workload before the run" in found.text
    assert found.text.startswith("the prefix cache had 90% of the first ")
    assert list(found.evidence["hit rate"]) == pytest.approx([0.3, 0.9], abs=0.01)


def test_the_limit_is_lower_for_equal_prompts_than_for_others_which_vary_by_chance() -> None:
    a = _run(0.3, 0.5)
    assert cache_confounder(a, _run(0.36, 0.5), explained=True) is not None
    assert cache_confounder(a, _run(0.36, 0.5, seed=2), explained=True) is None


def test_hits_between_two_scrapes_are_not_a_difference() -> None:
    """Both runs found 5,120 of the first 20,480 tokens, all of them in the last 8,192; only one was scraped before."""
    often, once = (
        CacheCounts(hits=hits, queries=queries, generated=np.zeros(hits.size), capacity=20_480.0)
        for hits, queries in (
            (np.repeat([0.0, 640.0], [12, 8]), np.full(20, 1024.0)),
            (np.array([5120.0]), np.array([20_480.0])),
        )
    )
    a, b = (conditions(lengths=lengths([512.0] * 400), cache=each) for each in (often, once))
    assert cache_confounder(a, b, explained=True) is None


def test_with_several_replicas_equal_prompts_vary_by_chance_too() -> None:
    """A load balancer sends a prompt to another replica, whose cache has not seen its prefix."""
    a, b = (dataclasses.replace(_run(first, 0.5), replicas=ReplicaCounts(configured=3)) for first in (0.30, 0.36))
    assert cache_confounder(a, b, explained=True) is None


def test_a_lower_hit_rate_later_is_named_only_if_nothing_else_explains_the_evictions() -> None:
    a, b = _run(0.5, 0.5), _run(0.5, 0.1)
    assert cache_confounder(a, b, explained=True) is None
    found = cache_confounder(a, b, explained=False)
    assert found is not None
    assert "before the run" not in found.text


def test_a_hit_rate_beyond_the_ideal_of_the_workload_is_named_on_one_side_only() -> None:
    a, b, close = (
        dataclasses.replace(_run(0.3, 0.3), cache_check=CacheCheck(hit_rate=rate, ideal=0.30))
        for rate in (0.31, 0.35, 0.33)
    )
    assert cache_confounder(a, b, explained=True) is not None
    assert cache_confounder(b, b, explained=True) is None
    assert cache_confounder(a, close, explained=True) is None, "on both sides of the limit by little"


def test_engines_without_these_counters_and_other_workloads_are_not_compared() -> None:
    assert cache_confounder(conditions(), conditions(), explained=False) is None
    other = conditions(workload=WorkloadConfig(prefix_len=100), cache=_cache(0.9, 0.9))
    assert cache_confounder(_run(0.3, 0.5), other, explained=False) is None
