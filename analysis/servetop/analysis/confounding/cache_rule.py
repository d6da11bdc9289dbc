"""Whether one run found more of its prompts in the prefix cache than the other, for the same workload."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.confounding.conditions import CacheCounts, RunConditions
from servetop.analysis.confounding.confounder import Confounder, ConfounderKind
from servetop.analysis.confounding.lengths_rule import same_requests_configured
from servetop.analysis.statistics.dependent_errors import ratio_error

SAME_PROMPTS_LIMIT = 0.03
"""Difference of the hit rates that matters if one server received the same prompts in the same order in both runs."""
OTHER_PROMPTS_LIMIT = 0.05
"""The same for other prompts of the same workload, and for whole runs, in which blocks are evicted."""
STANDARD_ERRORS = 4.0
MIN_REQUESTS = 20
"""Requests at the start below which hit rates are not compared."""
IN_TRANSIT = 2
"""Requests at the start that may find nothing because the request with the same prefix is still being computed."""
_START_SHARES = (0.15, 0.3, 0.6, 1.0)
"""Fractions of what the cache can hold after which the hit rates are compared."""
METRICS = ("ttft", "e2el", "throughput", "goodput")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rates:
    a: float
    b: float
    margin: float
    volume: float
    """Prompt tokens looked up."""

    def text(self, of: str) -> str:
        """Describe the rates in a phrase."""
        return f"the prefix cache had {self.b:.0%} of {of} in B and {self.a:.0%} in A"

    @property
    def differ(self) -> bool:
        return abs(self.b - self.a) > self.margin


def cache_confounder(a: RunConditions, b: RunConditions, *, explained: bool) -> Confounder | None:
    """Compare the hit rates at the start, then those of the whole runs unless another confounder explains them.

    Before as many tokens were computed as the cache holds, nothing can have been evicted, so the hit rate depends on
    the prompts and on what the cache held before the run, but not on the load or on the size of the cache.
    """
    if not same_requests_configured(a.config, b.config):
        return None
    checked = _Rates(a=a.cache_check.hit_rate, b=b.cache_check.hit_rate, margin=SAME_PROMPTS_LIMIT, volume=math.nan)
    if a.cache_check.exceeds != b.cache_check.exceeds and checked.differ:
        return _warm(checked, "the prompt tokens")
    start = _start_rates(a, b)
    if start is not None:
        return _warm(start, f"the first {start.volume:,.0f} prompt tokens")
    whole = None if explained else _whole_rates(a, b)
    if whole is None or not whole.differ:
        return None
    return _confounder(whole, f"{whole.text('the prompt tokens')}, for the same workload")


def _warm(rates: _Rates, of: str) -> Confounder:
    warm = "B" if rates.b > rates.a else "A"
    return _confounder(rates, f"{rates.text(of)}: the cache of {warm} held prompts of this workload before the run")


def _start_rates(a: RunConditions, b: RunConditions) -> _Rates | None:
    """Return the hit rates of the first tokens looked up, as many in both runs, where they differ most; else None.

    A cold cache differs most from a warm one at first; later it has seen every prefix, but chance is smaller.
    """
    largest = min(_volume_before_evictions(a.cache), _volume_before_evictions(b.cache))
    mean = _mean_prompt(a)
    volumes = (share * largest for share in _START_SHARES)
    rates = [_rates_at(a, b, volume, mean=mean) for volume in volumes if volume >= MIN_REQUESTS * mean]
    return max((each for each in rates if each.differ), key=lambda each: abs(each.b - each.a), default=None)


def _rates_at(a: RunConditions, b: RunConditions, volume: float, *, mean: float) -> _Rates:
    (hits_a, unsure_a), (hits_b, unsure_b) = (_hits_at(each.cache, volume) for each in (a, b))
    requests = volume / mean
    if a.config.seed == b.config.seed and a.replicas.configured == 1:
        margin = max(SAME_PROMPTS_LIMIT, IN_TRANSIT / requests)
    else:
        chance = _chance(a, requests=requests, rate=(hits_a + hits_b) / 2 / volume)
        margin = max(OTHER_PROMPTS_LIMIT, STANDARD_ERRORS * chance)
    margin += (unsure_a + unsure_b) / volume
    return _Rates(a=hits_a / volume, b=hits_b / volume, margin=margin, volume=volume)


def _chance(run: RunConditions, *, requests: float, rate: float) -> float:
    """Return the standard error of the difference of two hit rates: which prompts were drawn, and how long they are."""
    prompt = run.lengths.prompt
    variation = float(prompt.std() / prompt.mean())
    return math.sqrt(2 * (rate * (1 - rate) + (rate * variation) ** 2) / requests)


def _volume_before_evictions(cache: CacheCounts) -> float:
    """Return the tokens looked up before as many were looked up and generated as the cache holds; 0 if unknown."""
    if not cache.from_start or not cache.queries.size or math.isnan(cache.capacity):
        return 0.0
    queries = np.cumsum(cache.queries)
    return float(queries[queries + np.cumsum(cache.generated) <= cache.capacity].max(initial=0.0))


def _hits_at(cache: CacheCounts, volume: float) -> tuple[float, float]:
    """Return the tokens found among the first `volume` looked up, and by how much a scrape before or after may err."""
    queries, hits = (np.concatenate([[0.0], np.cumsum(each)]) for each in (cache.queries, cache.hits))
    after = int(np.searchsorted(queries, volume))
    below, above = max(after - 1, 0), min(after, queries.size - 1)
    low = max(hits[below], hits[above] - (queries[above] - volume))
    high = min(hits[above], hits[below] + (volume - queries[below]))
    return float(low + high) / 2, float(high - low) / 2


def _whole_rates(a: RunConditions, b: RunConditions) -> _Rates | None:
    errors = [ratio_error(each.cache.hits, each.cache.queries) for each in (a, b)]
    if any(map(math.isnan, errors)):
        return None
    margin = max(OTHER_PROMPTS_LIMIT, STANDARD_ERRORS * math.hypot(*errors))
    volume = float(min(a.cache.queries.sum(), b.cache.queries.sum()))
    return _Rates(a=a.cache.hit_rate, b=b.cache.hit_rate, margin=margin, volume=volume)


def _mean_prompt(run: RunConditions) -> float:
    return float(run.lengths.prompt.mean()) if run.lengths.prompt.size else math.nan


def _confounder(rates: _Rates, text: str) -> Confounder:
    return Confounder(kind=ConfounderKind.CACHE, text=text, evidence={"hit rate": (rates.a, rates.b)}, metrics=METRICS)
