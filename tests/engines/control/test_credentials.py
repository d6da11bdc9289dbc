"""Keys and headers go to the server that they are for, and to no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from servetop.core.clock import ManualClock
from servetop.core.config import EngineConfig
from servetop.core.errors import UsageError
from servetop.engines.attach import attach_engine
from servetop.engines.control.credentials import check_metrics_credentials

if TYPE_CHECKING:
    from tests.engines.conftest import PageServer

MODELS = (200, b'{"data": [{"id": "m"}]}')
HEADERS = {"X-Api-Key": "letmein"}


@pytest.fixture
async def other_server() -> AsyncIterator[PageServer]:
    """A second server, with another port and so another origin."""
    from tests.engines.conftest import PageServer

    started = PageServer()
    await started.start()
    yield started
    await started.vanish()


def sent_to(server: PageServer, line: str) -> set[bool]:
    """Whether the header line is in the requests that a server received."""
    return {line.lower() in head.lower() for head in server.heads}


async def test_keys_and_headers_do_not_go_to_the_metrics_of_another_server(
    server: PageServer, other_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K", "sk-1")
    server.pages = {"/v1/models": MODELS}
    config = EngineConfig(name="auto", url=server.url, model="", api_key_env="K", metrics_url=other_server.url)
    handle = await attach_engine(config, ManualClock(1.0), headers=HEADERS)
    await handle.sample()
    await handle.stop()
    assert other_server.heads
    assert sent_to(other_server, "x-api-key") | sent_to(other_server, "authorization") == {False}


async def test_metrics_at_the_same_origin_get_the_headers_of_the_load(server: PageServer) -> None:
    server.pages = {"/v1/models": MODELS, "/engine/metrics": (200, b"vllm:num_requests_running 2\n")}
    config = EngineConfig(name="auto", url=server.url, model="", metrics_url=f"{server.url}/engine/metrics")
    handle = await attach_engine(config, ManualClock(1.0), headers=HEADERS)
    sample = await handle.sample()
    await handle.stop()
    assert sample is not None
    assert sample.running == 2
    assert sent_to(server, "x-api-key: letmein") == {True}


async def test_the_metrics_server_gets_its_own_key_and_headers(
    server: PageServer, other_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRICS_KEY", "mk-1")
    monkeypatch.setenv("TENANT", "blue")
    server.pages = {"/v1/models": MODELS}
    config = EngineConfig(
        name="auto", url=server.url, model="", metrics_url=other_server.url,
        metrics_api_key_env="METRICS_KEY", metrics_header_env={"X-Scope-OrgID": "TENANT"},
    )  # fmt: skip
    handle = await attach_engine(config, ManualClock(1.0))
    await handle.stop()
    assert sent_to(other_server, "authorization: Bearer mk-1") == {True}
    assert sent_to(other_server, "x-scope-orgid: blue") == {True}
    assert sent_to(server, "authorization") == {False}


@pytest.mark.parametrize("status", [401, 403])
async def test_a_metrics_server_that_wants_a_key_is_named_with_the_option(
    server: PageServer, other_server: PageServer, status: int
) -> None:
    server.pages = {"/v1/models": MODELS}
    other_server.pages = {"/api/v1/query?query=time%28%29": (status, b"Unauthorized")}
    config = EngineConfig(name="auto", url=server.url, model="", metrics_url=other_server.url)
    handle = await attach_engine(config, ManualClock(1.0))
    assert await handle.sample() is None
    trouble = handle.metrics_trouble or ""
    await handle.stop()
    assert f"HTTP {status} from {other_server.url}/api/v1/query" in trouble
    assert "--metrics-api-key-env" in trouble


async def test_a_metrics_page_that_wants_a_key_is_not_said_to_be_off(vllm_server: PageServer) -> None:
    vllm_server.pages["/metrics"] = (401, b"Unauthorized")
    handle = await attach_engine(EngineConfig(name="vllm", url=vllm_server.url, model=""), ManualClock(1.0))
    assert await handle.sample() is None
    trouble = handle.metrics_trouble or ""
    await handle.stop()
    assert "HTTP 401" in trouble
    assert "--api-key-env or --header-env" in trouble


def test_credentials_of_metrics_need_an_address_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--metrics-url: give it"):
        check_metrics_credentials(EngineConfig(metrics_api_key_env="K"), {"K": "k"})
    config = EngineConfig(metrics_url="http://p:9090", metrics_header_env={"X-A": "NONE"})
    with pytest.raises(UsageError, match=r"NONE \(--metrics-header-env X-A\) is unset"):
        check_metrics_credentials(config, {})
    with pytest.raises(UsageError, match=r"NONE \(--metrics-api-key-env\) holds no API key"):
        check_metrics_credentials(EngineConfig(metrics_url="http://p:9090", metrics_api_key_env="NONE"), {})
