"""The verdict line denies a queue only as far as it is known: by every replica, by pages of now, by first tokens."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.overload import Limit
from servetop.analysis.goodput import Attainment
from servetop.analysis.live_stats import Rates
from servetop.analysis.trust.trust import Trust
from servetop.core.tick import LoadGauges
from tests.analysis.test_verdict_now import FACTS, FALLING_BEHIND, KEEPING_UP, SAMPLE, episode, line_of, stats_of

SLOWER = replace(KEEPING_UP, completed=14.5)
PAIR = replace(FACTS, replica_urls=("http://gpu-1:8000", "http://gpu-2:8000"))


def test_a_long_queue_at_full_throughput_is_no_headroom() -> None:
    line = line_of(stats_of(KEEPING_UP, engine=replace(SAMPLE, waiting=26)))
    assert line == "unclear: 26 waiting, done 16.0 of 16.0 req/s → hold this stage until it is steady"
    assert line_of(stats_of(KEEPING_UP, engine=replace(SAMPLE, waiting=6))).startswith("headroom")


def test_an_engine_that_completes_far_fewer_than_arrive_is_not_said_to_keep_up() -> None:
    line = line_of(stats_of(FALLING_BEHIND))
    assert line == "unclear: 0 waiting, done 12.0 of 16.0 req/s → hold this stage until it is steady"


def test_nothing_waits_is_said_of_an_empty_queue_only() -> None:
    assert "nothing waits" in line_of(stats_of(replace(KEEPING_UP, completed=14.5)))
    assert line_of(stats_of(FALLING_BEHIND, engine=replace(SAMPLE, waiting=6))).startswith("unclear: 6 waiting")


@pytest.mark.parametrize("sample", [None, replace(SAMPLE, waiting=None)])
def test_requests_without_a_first_token_are_an_overload_where_the_queue_is_not_exported(sample: object) -> None:
    waits = episode(EpisodeKind.AWAITING, worst=90.0)
    line = line_of(stats_of(KEEPING_UP, engine=sample), limit=Limit.UNKNOWN, episodes=(waits,), kv_peak=float("nan"))
    assert line.startswith("overloaded: up to 90 without a first token")


def test_missed_objectives_are_no_headroom() -> None:
    line = line_of(stats_of(attainment=Attainment(window=0.62)))
    assert line == (
        "objectives missed: 62% of the requests keep the objectives, done 16.0 of 16.0 req/s → "
        "hold this stage until it is steady, or lower the rate"
    )
    assert line_of(stats_of(attainment=Attainment(window=0.97))).startswith("headroom")


def test_a_replica_without_metrics_may_have_the_queue() -> None:
    few, all_of_them = (Trust(in_flight=80.0, littles_law_error=error) for error in (-0.5, -0.01))
    assert line_of(stats_of(SLOWER, trust=few), facts=PAIR).startswith("unclear")
    assert line_of(stats_of(SLOWER, trust=all_of_them), facts=PAIR).startswith("headroom")
    assert line_of(stats_of(SLOWER, trust=few)).startswith("headroom")


def test_an_old_page_shows_other_clients_only_beyond_what_was_in_flight_then() -> None:
    attached = replace(FACTS, managed=False, page_age=5.0)
    stats = stats_of(trust=Trust(in_flight=2.0, littles_law_error=5.0, token_error=9.0))
    assert line_of(stats, facts=attached, most_in_flight=8.0).startswith("other traffic")
    assert not line_of(stats, facts=attached, most_in_flight=14.0).startswith("other traffic")


def test_a_queue_that_is_not_exported_may_drain_or_stay_in_a_closed_loop() -> None:
    bare, closed = replace(SAMPLE, waiting=None), LoadGauges(request_rate=math.inf, max_concurrency=24, in_flight=24)
    assert line_of(stats_of(KEEPING_UP, engine=bare)).startswith("headroom")
    assert line_of(stats_of(Rates(offered=12.0, completed=16.0), engine=bare)).startswith("unclear")
    assert line_of(stats_of(KEEPING_UP, engine=bare, load=closed)).startswith("unclear")
    line = line_of(stats_of(KEEPING_UP, load=closed))
    assert line.startswith("headroom")
    assert line.endswith("→ raise the concurrency limit")


def test_an_imported_open_loop_of_unknown_rate_is_advised_a_rate() -> None:
    unlimited = stats_of(KEEPING_UP, load=LoadGauges(request_rate=math.inf, in_flight=24))
    assert line_of(unlimited, scheduled=True).endswith("→ raise the rate")
    assert line_of(unlimited).endswith("→ send more requests at once")


@pytest.mark.parametrize(("kv_usage", "name"), [(0.85, "headroom"), (0.93, "unclear")])
def test_a_nearly_full_cache_is_no_headroom(kv_usage: float, name: str) -> None:
    line = line_of(stats_of(KEEPING_UP, engine=replace(SAMPLE, kv_usage=kv_usage)))
    assert line.startswith(f"{name}: ")
    assert line.endswith("→ raise the rate" if name == "headroom" else "→ hold the load: the KV cache is nearly full")


@pytest.mark.parametrize("managed", [True, False])
def test_without_the_queue_of_a_server_elsewhere_the_network_may_hold_the_requests(*, managed: bool) -> None:
    waits = episode(EpisodeKind.AWAITING, worst=90.0)
    facts = replace(FACTS, managed=managed, url="http://gpu7:8000")
    stats = stats_of(FALLING_BEHIND, engine=replace(SAMPLE, waiting=None))
    line = line_of(stats, facts=facts, limit=Limit.UNKNOWN, episodes=(waits,))
    assert line.startswith("overloaded: " if managed else "engine or network overloaded: ")
    assert line.endswith("→ lower the rate below 12.0" if managed else "until it is steady, or lower the rate")


def test_the_limit_is_not_raised_at_an_engine_whose_queue_is_unknown() -> None:
    load = LoadGauges(stage=0, request_rate=16.0, max_concurrency=64, in_flight=64, queued=210)
    stats = stats_of(FALLING_BEHIND, load=load, engine=None, trust=Trust(slip_p99=0.001, limited=True))
    assert line_of(stats) == "concurrency-limited: 210 requests queued at the client, limit 64 in flight"
