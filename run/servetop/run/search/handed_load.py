"""The search that a running load is handed to: within the objectives of the run, over the kind of load that it has."""

from __future__ import annotations

import dataclasses
import math

from servetop.core.config import RunConfig
from servetop.core.config_values.search_config import MAX_CONCURRENCY, REQUEST_RATE, SearchConfig
from servetop.core.errors import UsageError
from servetop.core.tick import LoadGauges
from servetop.core.units import MAX_REQUEST_RATE
from servetop.run.search.search_setup import ALL_MAY_FAIL, SearchSetup

OBJECTIVE = "goodput>99%"
"""What such a search keeps: 99 % of the requests within every limit of `--goodput`, as its percentiles p99."""
REACH = 100.0
"""The search looks between the present load divided by this and multiplied by it."""


def handed_load(config: RunConfig, load: LoadGauges, *, at: float) -> RunConfig:
    """Return the configuration of a run whose load is handed to a search at a run time.

    UsageError with the reason if this run cannot be searched.
    """
    if not config.goodput:
        raise UsageError("a search needs objectives: start the run with --goodput, such as ttft:500")
    if config.drain_at_stages:
        raise UsageError("this run is a sweep, which chooses its loads itself")
    if config.workload.trace_rate is not None and not config.workload.arrivals:
        raise UsageError("the times of this load come from its dataset: a search cannot change them")
    rate, limit = load.request_rate, load.max_concurrency
    closed = limit is not None and (rate is None or math.isinf(rate))
    present = float(limit or 0) if closed else rate
    if present is None or not 0 < present < math.inf:
        raise UsageError("there is no load to begin with: a search begins at a rate or at a concurrency")
    least = 1.0 if closed else present / REACH
    most = math.ceil(present * REACH) if closed else min(present * REACH, MAX_REQUEST_RATE)
    search = SearchConfig(
        slo=(OBJECTIVE,),
        over=MAX_CONCURRENCY if closed else REQUEST_RATE,
        low=least,
        high=float(most),
        prior=present,
        since=at,
    )
    searched = dataclasses.replace(config, search=search, max_failures=ALL_MAY_FAIL)
    SearchSetup.of(searched)
    return searched
