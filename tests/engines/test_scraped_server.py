"""A server that cannot be reached is read through a Prometheus server, until its series end there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from servetop.core.clock import ManualClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.engines.handle import EngineHandle
from servetop.engines.watching.scraped_server import AFTER_OUTAGE, PRESENCE_PERIOD, attach_scraped
from tests.engines.prometheus_stand_in import PrometheusStandIn

UNREACHABLE = EngineError("nothing answers at http://gpu7:8000 (no such host): is the server up? try: curl …")


@pytest.fixture
async def prometheus(vllm_data: Path) -> AsyncIterator[PrometheusStandIn]:
    """Has scraped two servers of vLLM and an exporter that is no engine."""
    started = PrometheusStandIn()
    await started.start()
    page = (vllm_data / "metrics_0.32.0.txt").read_text(encoding="utf-8")
    for instance in ("gpu7:8000", "gpu8:8000"):
        started.scrape(page, instance)
    started.scrape("node_load1 0.5\n", "gpu7:9100")
    yield started
    await started.stop()


async def attached(prometheus: PrometheusStandIn, clock: ManualClock, *, instance: str = "gpu7:8000") -> EngineHandle:
    selector = quote(f'{{instance="{instance}"}}')
    metrics = f"{prometheus.url}/?match={selector}"
    config = EngineConfig(name="auto", model="", url=f"http://{instance}", max_num_seqs=16)
    return await attach_scraped(config, clock, metrics=metrics, unreachable=UNREACHABLE)


class WaitedClock(ManualClock):
    """A clock that says when a task waits for it: that which asks for the series has its answer by then."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()

    async def sleep_until(self, at: float) -> None:
        self.waits.set()
        await super().sleep_until(at)


async def asks_again(handle: EngineHandle, clock: WaitedClock, *, seconds: float = PRESENCE_PERIOD) -> None:
    """Let the next question be asked, after `seconds`, and answered."""
    await clock.waits.wait()
    clock.waits.clear()
    clock.advance_to(clock.now() + seconds)
    ends = [asyncio.ensure_future(each.wait()) for each in (clock.waits, handle.died)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for each in ends:
        each.cancel()


async def test_engine_model_and_figures_are_those_of_its_series_alone(prometheus: PrometheusStandIn) -> None:
    clock = ManualClock(100.0)
    handle = await attached(prometheus, clock)
    sample = await handle.sample()
    assert handle.facts.name == "vllm"
    assert (handle.facts.url, handle.facts.through) == ("http://gpu7:8000", prometheus.url)
    assert (handle.facts.kv_blocks_total, handle.facts.max_num_seqs) == (63, 16), "those of one server, not of two"
    assert handle.facts.model
    assert sample is not None
    assert sample.generation_tokens_total is not None
    why = "nothing answers at http://gpu7:8000 (no such host)"
    assert handle.remark == f"it is read through the Prometheus server at {prometheus.url}: {why}"
    await handle.stop()


async def test_a_slow_response_makes_no_new_sample_of_a_scrape_that_is_known(prometheus: PrometheusStandIn) -> None:
    clock = ManualClock(100.0)
    handle = await attached(prometheus, clock)
    first = await handle.sample()
    clock.advance_to(103.0)  # the clock of the Prometheus server stands still: its response took three seconds
    assert await handle.sample() is first
    await handle.stop()


async def test_series_of_another_job_are_an_error_that_names_both_servers(prometheus: PrometheusStandIn) -> None:
    with pytest.raises(EngineError) as raised:
        await attached(prometheus, ManualClock(), instance="gpu7:9100")
    assert str(raised.value) == (
        f"{UNREACHABLE}; the Prometheus server at {prometheus.url} has no metrics of an engine for it"
    )


async def test_it_is_gone_once_its_series_have_ended_however_new_the_last_sample_is(
    prometheus: PrometheusStandIn,
) -> None:
    clock = WaitedClock()
    handle = await attached(prometheus, clock)
    await asks_again(handle, clock)
    assert not handle.died.is_set()
    prometheus.ended = {"gpu7:8000"}
    await asks_again(handle, clock)
    assert handle.died.is_set()
    assert handle.exit_reason() == (
        "vLLM at http://gpu7:8000 stopped responding (its series have ended in the Prometheus server "
        f"at {prometheus.url})"
    )
    with pytest.raises(EngineError, match="has no metrics of an engine"):
        await attached(prometheus, clock)
    await handle.stop()


async def test_a_prometheus_server_that_was_away_has_two_scrapes_of_time_for_the_series(
    prometheus: PrometheusStandIn,
) -> None:
    clock = WaitedClock()
    handle = await attached(prometheus, clock)
    prometheus.is_away = True
    await asks_again(handle, clock)
    prometheus.is_away, prometheus.ended = False, {"gpu7:8000"}
    await asks_again(handle, clock)
    await asks_again(handle, clock)
    assert not handle.died.is_set(), "its next scrape is not due yet"
    await asks_again(handle, clock, seconds=AFTER_OUTAGE)
    assert handle.died.is_set()
    await handle.stop()
