"""Several servers as one engine: attached together, merged, reported when they leave and return."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.core.events import EngineSample
from servetop.engines.control import patient_client
from servetop.engines.metrics.sample_merge import COUNTERS, CounterTotals, merge_samples
from servetop.engines.replicas import ReplicaGroup, attach_replicas, check_load_balancer
from tests.engines.conftest import PageServer
from tests.harness import SLOW_MACHINE


@pytest.fixture
async def other_server(vllm_server: PageServer) -> AsyncIterator[PageServer]:
    """A second one, with the same pages."""
    started = PageServer()
    await started.start()
    started.pages = dict(vllm_server.pages)
    yield started
    await started.vanish()


def group_of(*servers: PageServer, name: str = "auto") -> EngineConfig:
    urls = [server.url for server in servers]
    return EngineConfig(name=name, model="", url=urls[0], more_urls=tuple(urls[1:]))


def quiet(back: bool, words: str) -> None:
    """Ignore changes."""


def metrics(running: int, tokens: int) -> tuple[int, bytes]:
    page = f"vllm:num_requests_running {running}\nvllm:generation_tokens_total {tokens}\n"
    return 200, f"# HELP\n{page}".encode()


async def until(condition: Callable[[], object], *, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds * SLOW_MACHINE):
        while not condition():
            await asyncio.sleep(0.02)


async def test_metrics_are_merged_and_each_replica_is_sampled(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    vllm_server.pages["/metrics"], other_server.pages["/metrics"] = metrics(3, 100), metrics(4, 50)
    group = await attach_replicas(group_of(vllm_server, other_server), clock, on_change=quiet)
    sample = await group.sample()
    assert sample is not None
    assert (sample.running, sample.generation_tokens_total, sample.waiting) == (7, 150, None)
    assert [(each.replica, each.running) for each in group.drain()] == [(0, 3), (1, 4)]
    assert group.drain() == []
    assert group.facts.replica_urls == (vllm_server.url, other_server.url)
    await group.stop()


async def test_the_series_of_the_engine_page_are_those_of_each_replica(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    vllm_server.pages["/metrics"], other_server.pages["/metrics"] = metrics(3, 100), metrics(4, 50)
    group = await attach_replicas(group_of(vllm_server, other_server), clock, on_change=quiet)
    await group.sample()
    reading = group.take_series()
    assert reading is not None
    assert reading.values == {
        "vllm:num_requests_running{replica=0}": 3.0, "vllm:generation_tokens_total{replica=0}": 100.0,
        "vllm:num_requests_running{replica=1}": 4.0, "vllm:generation_tokens_total{replica=1}": 50.0,
    }  # fmt: skip
    assert group.take_series() is None
    group.collect_series_next()
    await group.sample()
    again = group.take_series()
    assert again is not None
    assert again.at > reading.at
    await group.stop()


async def test_the_blocks_of_all_servers_are_one_number(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    group = await attach_replicas(group_of(vllm_server, other_server), clock, on_change=quiet)
    assert (group.facts.kv_blocks_total, group.facts.name) == (126, "vllm")
    await group.stop()


async def test_a_failed_replica_is_reported_keeps_its_counters_and_rejoins(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    vllm_server.pages["/metrics"], other_server.pages["/metrics"] = metrics(3, 100), metrics(4, 50)
    heard: list[tuple[bool, str]] = []
    group: ReplicaGroup = await attach_replicas(
        group_of(vllm_server, other_server), clock, on_change=lambda back, words: heard.append((back, words))
    )
    await group.sample()
    port = int(other_server.url.rsplit(":", 1)[1])
    await other_server.vanish()
    await until(lambda: heard)
    assert heard == [(False, f"vLLM at {other_server.url} stopped responding (connection refused): 1 of 2 left")]
    assert not group.died.is_set()
    alone = await group.sample()
    assert alone is not None
    assert (alone.running, alone.generation_tokens_total) == (3, 150)
    other_server.pages["/metrics"] = metrics(1, 8)
    await other_server.start(port)
    await until(lambda: len(heard) == 2)
    assert heard[1] == (True, f"vLLM at {other_server.url} is back")
    both = await group.sample()
    assert both is not None
    assert (both.running, both.generation_tokens_total) == (4, 158)
    await group.stop()


async def test_the_engine_has_died_when_the_last_replica_fails(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    group = await attach_replicas(group_of(vllm_server, other_server), clock, on_change=quiet)
    await vllm_server.vanish()
    await other_server.vanish()
    await asyncio.wait_for(group.died.wait(), 10)
    assert "stopped responding (connection refused)" in group.exit_reason()
    assert await group.sample() is None
    await group.stop()


async def refused(config: EngineConfig, clock: MonotonicClock) -> str:
    with pytest.raises((EngineError, UsageError)) as caught:
        await attach_replicas(config, clock, on_change=quiet)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_servers_with_different_models_are_refused_with_both_names(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    other_server.pages["/v1/models"] = (200, json.dumps({"data": [{"id": "gpt-x", "owned_by": "vllm"}]}).encode())
    words = await refused(group_of(vllm_server, other_server), clock)
    assert words.startswith(f"the servers differ: {vllm_server.url} is vLLM with /models/tiny-llama, ")
    assert f"{other_server.url} is vLLM with gpt-x" in words


async def test_different_engines_are_refused(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    other_server.pages = {"/v1/models": (200, b'{"data": [{"id": "/models/tiny-llama"}]}')}
    assert "the servers differ" in await refused(group_of(vllm_server, other_server), clock)


async def test_one_that_does_not_answer_is_named(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    await other_server.vanish()
    assert f"nothing answers at {other_server.url}" in await refused(group_of(vllm_server, other_server), clock)


async def test_a_duplicate_server_is_rejected(vllm_server: PageServer, clock: MonotonicClock) -> None:
    assert "is given twice" in await refused(group_of(vllm_server, vllm_server), clock)


async def test_an_unreachable_load_balancer_is_reported(other_server: PageServer) -> None:
    await check_load_balancer(other_server.url)
    await other_server.vanish()
    with pytest.raises(EngineError, match="is --front-door right"):
        await check_load_balancer(other_server.url)


lives = st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=5).map(sorted), min_size=1, max_size=4)


@given(lives)
def test_a_counter_goes_on_through_restarts(reported: list[list[int]]) -> None:
    """A restart is visible only where the new value is below the last one."""
    totals, expected, last, seen = CounterTotals(), 0.0, 0.0, [0.0]
    for life in reported:
        for value in life:
            totals.add(EngineSample(scrape_start=0.0, scrape_end=0.0, generation_tokens_total=float(value)))
            expected += value - last if value >= last else value
            last = value
            seen.append(totals.total("generation_tokens_total") or 0.0)
    assert seen == sorted(seen)
    assert totals.total("generation_tokens_total") == expected
    assert totals.total("preemptions_total") is None


def test_usage_is_weighted_by_blocks_and_plain_where_they_are_not_known() -> None:
    def usage(*servers: tuple[float | None, float | None]) -> float | None:
        samples = [
            EngineSample(scrape_start=float(number), scrape_end=number + 0.5, kv_usage=share, kv_blocks_total=blocks)
            for number, (share, blocks) in enumerate(servers)
        ]
        sum_of_all = merge_samples(samples, [])
        assert (sum_of_all.scrape_start, sum_of_all.scrape_end) == (0.0, len(servers) - 0.5)
        return sum_of_all.kv_usage

    assert math.isclose(usage((0.5, 100.0), (1.0, 300.0)) or 0, 0.875)
    assert usage((0.5, None), (1.0, 300.0)) == 0.75
    assert usage((None, None), (0.25, None)) == 0.25
    assert usage((None, 10.0)) is None


def test_every_counter_of_a_sample_is_added_through_restarts() -> None:
    assert "generation_tokens_total" in COUNTERS
    assert "kv_blocks_total" not in COUNTERS


async def test_one_that_is_late_holds_up_none_of_the_others(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patient_client, "BUSY_TIMEOUT", 1000.0)
    vllm_server.pages["/metrics"], other_server.pages["/metrics"] = metrics(3, 100), metrics(4, 50)
    group = await attach_replicas(group_of(vllm_server, other_server), clock, on_change=quiet)
    other_server.answering.clear()
    scraped: list[int] = []
    while len(scraped) < 3:
        assert await group.sample() is not None
        scraped += [each.replica for each in group.drain()]
    assert set(scraped) == {0}
    other_server.answering.set()
    await until(lambda: any(each.replica == 1 for each in group.drain()))
    both = await group.sample()
    assert both is not None
    assert both.generation_tokens_total == 150
    await group.stop()


async def test_each_sample_scrapes_again_while_another_one_waits(
    vllm_server: PageServer, other_server: PageServer, clock: MonotonicClock
) -> None:
    vllm_server.pages["/metrics"], other_server.pages["/metrics"] = metrics(3, 100), metrics(4, 50)
    group = await attach_replicas(group_of(vllm_server, other_server), clock, on_change=quiet)
    first, second = await asyncio.gather(group.sample(), group.sample())
    assert first is not None
    assert second is not None
    assert [each.replica for each in group.drain()].count(0) == 2, "the last look at an engine must see its last count"
    await group.stop()
