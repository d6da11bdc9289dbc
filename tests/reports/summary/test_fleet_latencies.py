"""Latencies of several servers together are those of all their requests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.reports.summary.fleet_latencies import fleet_latencies

VLLM = EngineFacts(name="vllm", title="vLLM")
TTFT = "vllm:time_to_first_token_seconds_bucket"


def series(buckets: Mapping[str, float], *, before: float = 100.0) -> ScrapeHistory:
    """The buckets of TTFT of a server, which counted `before` in each of them before it was watched."""
    history = ScrapeHistory()
    names = "\n".join(f"{TTFT}{{le={bound}}}" for bound in buckets)
    history.extend(
        SeriesScrape(at=at, names=names, numbers=pack_numbers([before + share * each for each in buckets.values()]))
        for at, share in ((1.0, 0.0), (61.0, 1.0))
    )
    return history


def test_quantiles_are_those_of_all_requests_not_means_of_the_servers() -> None:
    fast, slow = {"0.1": 90.0, "1.0": 90.0, "+Inf": 90.0}, {"0.1": 0.0, "1.0": 10.0, "+Inf": 10.0}
    found = fleet_latencies([(VLLM, series(fast)), (VLLM, series(slow)), (None, ScrapeHistory())])
    assert found is not None
    (ttft,) = found
    assert ttft.name == "TTFT"
    assert ttft.value == pytest.approx(0.1 * 50 / 90)
    assert ttft.p90 == pytest.approx(0.1)


def test_buckets_with_other_bounds_and_other_engines_are_not_added_up() -> None:
    buckets = {"0.1": 90.0, "1.0": 95.0, "+Inf": 95.0}
    other = {"0.2": 90.0, "1.0": 95.0, "+Inf": 95.0}
    assert fleet_latencies([(VLLM, series(buckets)), (VLLM, series(other))]) is None
    sglang = EngineFacts(name="sglang", title="SGLang")
    assert fleet_latencies([(VLLM, series(buckets)), (sglang, series(buckets))]) is None
    assert fleet_latencies([]) is None


def tokens(seconds: float, count: float, *, with_sum: bool = True) -> ScrapeHistory:
    """The histogram of ITL of a server: `count` observations, `seconds` in all."""
    name = "vllm:inter_token_latency_seconds"
    grown = {f"{name}_bucket{{le={bound}}}": count for bound in ("0.1", "+Inf")}
    grown |= {f"{name}_sum": seconds} if with_sum else {}
    history = ScrapeHistory()
    history.extend(
        SeriesScrape(at=at, names="\n".join(grown), numbers=pack_numbers([at * each for each in grown.values()]))
        for at in (1.0, 2.0)
    )
    return history


def test_the_mean_is_that_of_all_tokens_if_all_servers_have_their_sums() -> None:
    both = fleet_latencies([(VLLM, tokens(3.0, 100.0)), (VLLM, tokens(5.0, 300.0))])
    assert both is not None
    assert both[0].name == "ITL"
    assert both[0].mean == pytest.approx(8.0 / 400)
    one = fleet_latencies([(VLLM, tokens(3.0, 100.0)), (VLLM, tokens(5.0, 300.0, with_sum=False))])
    assert one is not None
    assert one[0].mean is None, "the mean of some servers is not that of all"
