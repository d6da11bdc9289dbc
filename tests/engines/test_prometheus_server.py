"""A Prometheus server gives the values of the engine's own metrics page, and their age."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.clock import ManualClock, MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.engines.attach import attach_engine
from servetop.engines.metrics.metrics_sampler import EngineSampler
from servetop.engines.metrics.prometheus_server import MetricsAddress, newest_samples, server_time
from servetop.engines.metrics.vllm_metrics import VLLM_METRICS
from tests.engines.conftest import PageServer
from tests.engines.prometheus_stand_in import PrometheusStandIn


@pytest.fixture
async def prometheus() -> AsyncIterator[PrometheusStandIn]:
    """Has scraped nothing yet."""
    started = PrometheusStandIn()
    await started.start()
    yield started
    await started.stop()


@pytest.fixture
def page(vllm_data: Path) -> str:
    return (vllm_data / "metrics_0.32.0.txt").read_text(encoding="utf-8")


def watched(server: PageServer, prometheus: PrometheusStandIn, selector: str = "") -> EngineConfig:
    return EngineConfig(name="auto", url=server.url, model="", metrics_url=f"{prometheus.url}/{selector}")


def values(sample: object) -> dict[str, Any]:
    assert dataclasses.is_dataclass(sample)
    fields = dataclasses.asdict(sample)  # type: ignore[arg-type]
    return {name: value for name, value in fields.items() if not name.startswith("scrape_")}


async def test_every_field_and_fact_is_that_of_the_page_itself(
    vllm_server: PageServer, prometheus: PrometheusStandIn, page: str, clock: MonotonicClock
) -> None:
    prometheus.scrape(page, "gpu7:8000")
    direct = await attach_engine(EngineConfig(name="auto", url=vllm_server.url, model=""), clock)
    by_prometheus = await attach_engine(watched(vllm_server, prometheus, '?match={instance="gpu7:8000"}'), clock)
    own, reported = await direct.sample(), await by_prometheus.sample()
    assert values(reported) == values(own)
    assert values(reported)["running"] is not None
    assert by_prometheus.facts == direct.facts
    assert by_prometheus.facts.kv_blocks_total == 63
    assert by_prometheus.metrics_trouble is None
    await direct.stop()
    await by_prometheus.stop()


async def test_a_sample_bears_the_time_of_its_scrape_and_is_recorded_once(
    vllm_server: PageServer, prometheus: PrometheusStandIn, page: str
) -> None:
    clock = ManualClock(100.0)
    prometheus.scrape(page, "gpu7:8000")
    handle = await attach_engine(watched(vllm_server, prometheus), clock)
    prometheus.now += 12.0
    first = await handle.sample()
    assert first is not None
    assert first.scrape_end == pytest.approx(88.0)
    assert await handle.sample() is first
    prometheus.scrape(page, "gpu7:8000")
    second = await handle.sample()
    assert second is not None
    assert second.scrape_end == pytest.approx(100.0)
    await handle.stop()


async def test_a_sampler_keeps_the_last_sample_and_reports_its_age() -> None:
    class Unchanging:
        def __init__(self, sample: Any) -> None:
            self.sample_of = sample

        async def sample(self) -> Any:
            return self.sample_of

    clock = ManualClock(20.0)
    old = VLLM_METRICS.sample({"/metrics": b"vllm:num_requests_running 3\n"}, start=7.9, end=8.0)
    sampler = EngineSampler(Unchanging(old), clock)
    sampler.start()
    drained = []
    for _ in range(40):
        clock.advance_to(clock.now() + 0.05)
        await asyncio.sleep(0)
        drained += sampler.drain()
    await sampler.stop()
    assert drained == [old]
    assert sampler.newest is old
    assert sampler.age() == pytest.approx(clock.now() - 8.0)


async def test_a_selector_chooses_one_of_two_engines_and_without_one_they_add_up(
    vllm_server: PageServer, prometheus: PrometheusStandIn, clock: MonotonicClock
) -> None:
    for instance, running in (("gpu7:8000", 3), ("gpu8:8000", 4)):
        prometheus.scrape(f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running {running}\n", instance)
    both = await attach_engine(watched(vllm_server, prometheus), clock)
    one = await attach_engine(watched(vllm_server, prometheus, '?match={instance="gpu8:8000"}'), clock)
    assert [values(await each.sample())["running"] for each in (both, one)] == [7.0, 4.0]
    await both.stop()
    await one.stop()


@pytest.mark.parametrize(
    ("match", "outcomes"), [("", (148.0, 0.0)), ('?match={instance=~"gpu7:8000|shop:80"}', (152.0, 0.0))]
)
async def test_answers_of_other_programs_are_not_those_of_the_engine(
    vllm_server: PageServer, prometheus: PrometheusStandIn, page: str, match: str,
    outcomes: tuple[float, float],
) -> None:  # fmt: skip
    prometheus.scrape(page, "gpu7:8000")
    clock = ManualClock(100.0)
    prometheus.now += 5.0
    answers = "# TYPE http_requests_total counter\nhttp_requests_total"
    prometheus.scrape(f'{answers}{{handler="/cart",status="5xx"}} 4000\n', "shop:80")
    handle = await attach_engine(watched(vllm_server, prometheus, match), clock)
    found = await handle.sample()
    assert found is not None
    assert (found.requests_ended_total, found.requests_failed_total) == outcomes
    assert found.scrape_end == pytest.approx(95.0), "when the engine was scraped"
    await handle.stop()


async def test_missing_series_are_reported_by_name(
    vllm_server: PageServer, prometheus: PrometheusStandIn, page: str, clock: MonotonicClock
) -> None:
    prometheus.scrape(page, "gpu7:8000")
    handle = await attach_engine(watched(vllm_server, prometheus, '?match={instance="gpu9:8000"}'), clock)
    assert await handle.sample() is None
    words = handle.metrics_trouble or ""
    assert words.startswith(f"no metrics from the Prometheus server at {prometheus.url} (none of vllm:")
    assert 'with {instance="gpu9:8000"} was scraped in the last 120 s' in words
    assert "\n" not in words
    await handle.stop()


async def test_a_selector_that_prometheus_rejects_is_reported_with_its_message(
    vllm_server: PageServer, prometheus: PrometheusStandIn, clock: MonotonicClock
) -> None:
    handle = await attach_engine(watched(vllm_server, prometheus, "?match={instance==}x}"), clock)
    assert await handle.sample() is None
    assert 'HTTP 400: {"status": "error"' in (handle.metrics_trouble or "")
    await handle.stop()


async def test_a_metrics_url_of_another_server_is_read_as_a_page(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    config = EngineConfig(name="auto", url=vllm_server.url, model="", metrics_url=vllm_server.url)
    handle = await attach_engine(config, clock)
    assert values(await handle.sample())["running"] is not None
    await handle.stop()
    chosen = dataclasses.replace(config, metrics_url=f'{vllm_server.url}/?match={{job="x"}}')
    handle = await attach_engine(chosen, clock)
    assert await handle.sample() is None
    assert "does not respond as a Prometheus server" in (handle.metrics_trouble or "")
    await handle.stop()


def series(name: str, *pairs: tuple[float, str], **labels: str) -> dict[str, Any]:
    return {"metric": {"__name__": name, **labels}, "values": [list(pair) for pair in pairs]}


def answer(*rows: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(rows)}}


def test_a_server_that_is_gone_does_not_count_any_more() -> None:
    left = series("vllm:num_requests_running", (0.0, "5"), (15.0, "5"), instance="a")
    lives = series("vllm:num_requests_running", (40.0, "2"), (55.0, "3"), instance="b")
    scraped = newest_samples(answer(left, lives))
    assert scraped is not None
    assert scraped.page == b'vllm:num_requests_running{instance="b"} 3\n'
    assert scraped.at == 55.0


@pytest.mark.parametrize(
    ("text", "url", "match"),
    [
        ("http://prom:9090", "http://prom:9090", None),
        ('http://prom:9090/?match={instance="gpu7:8000"}', "http://prom:9090/", 'instance="gpu7:8000"'),
        ("http://prom/x?match[]=%7Bjob%3D%22a%22%7D", "http://prom/x", 'job="a"'),
        ('http://prom?match={job=~"a.+"}', "http://prom", 'job=~"a.+"'),
        ("http://prom/?match={}", "http://prom/", ""),
    ],
)
def test_a_metrics_url_is_an_address_and_a_selector(text: str, url: str, match: str | None) -> None:
    assert MetricsAddress.parse(text) == MetricsAddress(url, match)


@pytest.mark.parametrize("text", ["http://prom/?query=up", "http://prom/?match=job", "http://prom/?{job}"])
def test_an_invalid_selector_is_rejected_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="must be a selector, as in"):
        MetricsAddress.parse(text)


label_texts = st.text(st.characters(codec="utf-8"))


@given(st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), label_texts, max_size=3), st.floats(0, 1e12))
def test_labels_and_values_come_through_as_they_are(labels: dict[str, str], value: float) -> None:
    scraped = newest_samples(answer(series("vllm:num_requests_running", (1.0, repr(value)), **labels)))
    assert scraped is not None
    sample = VLLM_METRICS.sample({"/metrics": scraped.page}, start=0.0, end=0.0)
    assert sample is not None
    assert sample.running == value


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["status", "data", "result", "metric", "values", "value", "__name__"]), inner)
    ),
)


@given(json_values | st.builds(lambda rows: answer(*rows), st.lists(json_values, max_size=3)))
def test_any_response_is_parsed_without_an_error(data: Any) -> None:
    newest_samples(data)
    server_time(data)
