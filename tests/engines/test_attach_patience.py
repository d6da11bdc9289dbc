"""Servers that respond late, and URLs with the wrong scheme."""

from __future__ import annotations

import asyncio
import gc

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.core.events import LogLine
from servetop.engines import attach
from servetop.engines.attach import attach_engine
from tests.engines.conftest import PageServer


def at(url: str, *, timeout: float = 30.0) -> EngineConfig:
    return EngineConfig(name="auto", url=url, model="", attach_timeout=timeout)


async def test_attaching_waits_for_a_saturated_server_and_reports_the_wait(
    vllm_server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "REQUEST_TIMEOUT", 0.2)
    vllm_server.answering.clear()
    output: list[LogLine] = []

    def heard(line: LogLine) -> None:
        output.append(line)
        vllm_server.answering.set()

    handle = await attach_engine(at(vllm_server.url), clock, on_line=heard)
    assert (handle.facts.name, handle.facts.model, handle.facts.kv_blocks_total) == ("vllm", "/models/tiny-llama", 63)
    assert output[0].text.startswith(f"waiting for {vllm_server.url} to respond: ")
    assert output[0].text.endswith(" s left of --attach-timeout 30")
    await handle.stop()


class PausedClock(MonotonicClock):
    """A clock that a pause of the process, as on a suspended machine, moves on."""

    paused = 0.0

    def now(self) -> float:
        return super().now() + self.paused


async def test_a_pause_of_this_process_is_not_waiting_for_the_server(
    vllm_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "REQUEST_TIMEOUT", 0.2)
    vllm_server.answering.clear()
    paused = PausedClock()

    def pause(_: LogLine) -> None:
        paused.paused += 60.0
        vllm_server.answering.set()

    handle = await attach_engine(at(vllm_server.url), paused, on_line=pause)
    assert (handle.facts.name, handle.facts.model) == ("vllm", "/models/tiny-llama")
    await handle.stop()


async def test_a_late_server_is_not_taken_for_a_plain_openai_server(
    vllm_server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "REQUEST_TIMEOUT", 0.2)
    vllm_server.answering.clear()
    vllm_server.prompt = {"/v1/models"}
    handle = await attach_engine(at(vllm_server.url), clock, on_line=lambda _: vllm_server.answering.set())
    assert (handle.facts.name, handle.facts.kv_blocks_total) == ("vllm", 63)
    await handle.stop()


async def test_a_metrics_page_that_does_not_arrive_is_reported(
    vllm_server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "REQUEST_TIMEOUT", 0.2)
    vllm_server.answering.clear()
    vllm_server.prompt = {"/v1/models"}
    config = EngineConfig(name="openai", url=vllm_server.url, model="", attach_timeout=0.3)
    handle = await attach_engine(config, clock)
    assert await handle.sample() is None
    assert handle.metrics_trouble == "no metrics: /metrics did not arrive in time, so the engine is not measured"
    vllm_server.answering.set()
    await handle.stop()


async def test_a_server_that_never_responds_fails_after_the_attach_timeout(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    vllm_server.answering.clear()
    with pytest.raises(EngineError, match=r"nothing answers at .* \(no response within 0.3 s\): is the server up\?"):
        await asyncio.wait_for(attach_engine(at(vllm_server.url, timeout=0.3), clock), 20.0)
    vllm_server.answering.set()


async def test_a_refused_connection_is_reported_immediately(clock: MonotonicClock, refusing_url: str) -> None:
    output: list[LogLine] = []
    with pytest.raises(EngineError, match=r"connection refused\): is the server up\? try: curl"):
        await attach_engine(at(refusing_url), clock, on_line=output.append)
    assert output == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # anyio leaves failed handshakes open
async def test_https_to_a_server_of_plain_http_names_the_scheme(vllm_server: PageServer, clock: MonotonicClock) -> None:
    url = vllm_server.url.replace("http:", "https:")
    with pytest.raises(EngineError) as caught:
        await attach_engine(at(url), clock)
    assert str(caught.value) == f"{url}: it does not speak TLS: write http:// instead of https://"
    del caught
    gc.collect()


async def test_http_to_a_tls_port_names_the_scheme(tls_server: PageServer, clock: MonotonicClock) -> None:
    url = tls_server.url.replace("https:", "http:")
    with pytest.raises(EngineError) as caught:
        await attach_engine(at(url), clock)
    assert str(caught.value) == f"{url} speaks TLS: write https:// instead of http://"
