"""When a hit rate is explained by the workload, and what is said if it is not."""

from __future__ import annotations

import pytest

from servetop.analysis.trust.cache_check import CacheCheck
from servetop.analysis.trust.trust import Trust
from servetop.analysis.trust.trust_verdict import TrustVerdict


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (CacheCheck(hit_rate=0.92, ideal=0.6), "explains at most 0.60: the cache held prompts of an earlier run"),
        (CacheCheck(hit_rate=0.92, ideal=0.6, promised="cold"), "held prompts that it should not have"),
        (CacheCheck(hit_rate=0.3, ideal=0.6), ""),
        (CacheCheck(hit_rate=0.3, ideal=0.6, promised="warm"), "0.30 of the ideal 0.60: prefixes were evicted"),
        (CacheCheck(hit_rate=0.615, ideal=0.6, promised="warm"), ""),
        (CacheCheck(hit_rate=0.65, ideal=0.6, slack=0.1), ""),
        (CacheCheck(hit_rate=0.65), ""),
        (CacheCheck(ideal=0.65, promised="cold"), ""),
    ],
)
def test_a_hit_rate_beyond_the_ideal_is_always_named_and_one_below_it_only_if_promised(
    check: CacheCheck, words: str
) -> None:
    assert words in check.reason
    assert bool(check.reason) == bool(words)
    trust = Trust(slip_p99=0.001, loop_lag_p99=0.001, cache=check)
    assert trust.verdict is (TrustVerdict.SUSPECT if words else TrustVerdict.OK)
    assert trust.reasons == ((check.reason,) if words else ())
