"""Metrics pages on the server itself, on another port, or at a given URL: timeouts, and servers that start late."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.engines.adapters.vllm import VllmEngine
from servetop.engines.control import patient_client
from servetop.engines.control.control_client import ServerClient
from servetop.engines.metrics.metrics_source import metrics_scraper

if TYPE_CHECKING:
    from tests.engines.conftest import PageServer


class Impatient(VllmEngine):
    scrape_timeout = 0.2


@pytest.mark.parametrize("where", ["its own server", "another port", "a named address"])
async def test_a_silent_page_is_given_up_after_the_engines_own_time(
    server: PageServer, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patient_client, "BUSY_TIMEOUT", 1000.0)
    client = ServerClient(server.url if where == "its own server" else "http://127.0.0.1:1")
    config = EngineConfig(metrics_url=server.url if where == "a named address" else None)
    port = int(server.url.rsplit(":", 1)[1]) if where == "another port" else None
    feed = metrics_scraper(Impatient(), client, config=config, port=port)
    assert feed is not None
    server.answering.clear()
    assert (await feed.fetch())["/metrics"].error == "no response within 0.2 s"
    patient = asyncio.create_task(feed.fetch())
    await asyncio.sleep(0.5)
    assert not patient.done(), "a server that was too busy once is waited for longer"
    server.answering.set()
    assert (await patient)["/metrics"].status == 404
    server.answering.clear()
    assert (await feed.fetch())["/metrics"].error == "no response within 0.2 s"
    server.answering.set()
    await feed.pages.close()
    await client.close()


@pytest.mark.parametrize(("listens", "timeout"), [(True, 60), (False, 0.2)])
async def test_a_metrics_server_is_waited_for_until_it_accepts_connections(listens: bool, timeout: float) -> None:
    client = ServerClient("http://127.0.0.1:1")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # refuses connections until it listens
        scraper = metrics_scraper(Impatient(), client, config=EngineConfig(), port=sock.getsockname()[1])
        assert scraper is not None
        waiting = asyncio.create_task(scraper.wait_until_reachable(MonotonicClock(), timeout=timeout))
        if listens:
            await asyncio.sleep(0.1)
            assert not waiting.done()
            sock.listen()
        async with asyncio.timeout(30):
            await waiting
    await scraper.pages.close()
    await client.close()
