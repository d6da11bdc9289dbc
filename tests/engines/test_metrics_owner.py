"""The owner of a metrics URL is detected where a gateway hides the engine, on a page and on a Prometheus server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from servetop.core.clock import ManualClock
from servetop.core.config import EngineConfig
from servetop.engines.attach import attach_engine
from servetop.engines.engine_registry import load_engine
from servetop.engines.metrics.exported_tables import EXPORTED_BY, exported_metrics
from servetop.engines.metrics.metrics_owner import PREFIXES, owner_of
from tests.engines.conftest import PageServer
from tests.engines.prometheus_stand_in import PrometheusStandIn


@pytest.fixture
async def gateway() -> AsyncIterator[PageServer]:
    """Lists a model, and says nothing of the engine behind it."""
    started = PageServer()
    await started.start()
    started.pages["/v1/models"] = (200, json.dumps({"data": [{"id": "m", "object": "model"}]}).encode())
    yield started
    await started.vanish()


@pytest.fixture
async def prometheus() -> AsyncIterator[PrometheusStandIn]:
    """Has scraped nothing yet."""
    started = PrometheusStandIn()
    await started.start()
    yield started
    await started.stop()


def test_each_prefix_is_that_of_a_series_in_its_engines_table() -> None:
    for prefix, engine in PREFIXES.items():
        assert any(name.startswith(prefix) for spec in EXPORTED_BY[engine] for name in spec.series)
        assert load_engine(engine).metrics() is not None


def test_the_owner_has_most_series() -> None:
    assert owner_of(["nv_trt_llm_request_metrics", "vllm:a", "vllm:b", "go_info"]) == "vllm"
    assert owner_of(["process_cpu_seconds_total", "http_requests_total"]) is None


async def test_the_metrics_behind_a_gateway_are_read_with_their_owners_table(
    gateway: PageServer, vllm_server: PageServer
) -> None:
    config = EngineConfig(name="auto", url=gateway.url, model="", metrics_url=vllm_server.url)
    handle = await attach_engine(config, ManualClock(1.0))
    assert (handle.facts.name, exported_metrics(handle.facts)) == ("openai", EXPORTED_BY["vllm"])
    assert await handle.sample() is not None
    reading = handle.take_series()
    assert reading is not None
    assert "vllm:iteration_tokens_total_sum" in reading.values
    await handle.stop()


async def test_a_gateway_without_known_metrics_has_no_table(gateway: PageServer) -> None:
    gateway.pages["/metrics"] = (200, b"requests_total 3\n")
    config = EngineConfig(name="auto", url=gateway.url, model="", metrics_url=gateway.url)
    handle = await attach_engine(config, ManualClock(1.0))
    assert exported_metrics(handle.facts) == ()
    await handle.stop()


async def test_a_prometheus_server_has_the_series_of_the_engine_page_once_per_scrape(
    gateway: PageServer, prometheus: PrometheusStandIn, vllm_data: Path
) -> None:
    page = (vllm_data / "metrics_0.32.0.txt").read_text(encoding="utf-8")
    prometheus.scrape(page, "gpu7:8000")
    clock = ManualClock(100.0)
    config = EngineConfig(name="auto", url=gateway.url, model="", metrics_url=prometheus.url)
    handle = await attach_engine(config, clock)
    assert exported_metrics(handle.facts) == EXPORTED_BY["vllm"]
    await handle.sample()
    reading = handle.take_series()
    assert reading is not None
    assert reading.values["vllm:iteration_tokens_total_sum"] == 47123.0
    assert reading.values["vllm:request_success_total{finished_reason=length}"] == 148.0  # also one of the panels'
    asked = len(prometheus.queries)
    await handle.sample()
    assert handle.take_series() is None
    assert not any("iteration_tokens" in query for query in prometheus.queries[asked:])
    prometheus.now += 15.0
    clock.advance_to(115.0)
    prometheus.scrape(page, "gpu7:8000")
    await handle.sample()
    later = handle.take_series()
    assert later is not None
    assert later.at == pytest.approx(115.0)
    await handle.stop()
