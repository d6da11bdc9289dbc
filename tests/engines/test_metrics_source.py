"""The timeout of a metrics page is the engine's own, wherever the page is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

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
