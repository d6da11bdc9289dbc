"""Gateways in front of a server: a header of their own for the key, and a list of models that is not the truth."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.engines.attach import attach_engine
from servetop.engines.handle import EngineHandle
from tests.engines.conftest import PageServer

KEY = {"X-API-Key": "letmein"}
MODELS = "/v1/models"


@pytest.fixture
async def other() -> AsyncIterator[PageServer]:
    server = PageServer()
    await server.start()
    yield server
    await server.vanish()


async def attach(
    server: PageServer, clock: MonotonicClock, *, engine: str = "auto", model: str = "", **more: str
) -> EngineHandle:
    config = EngineConfig(name=engine, model=model, url=server.url, metrics_url=more.get("metrics_url"))
    return await attach_engine(config, clock, headers=KEY)


def listing(*names: str) -> tuple[int, bytes]:
    return 200, json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


async def test_the_headers_of_the_user_are_sent_with_every_request(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    handle = await attach(vllm_server, clock)
    assert await handle.sample() is not None
    await handle.stop()
    assert len(vllm_server.heads) > 3
    assert [head for head in vllm_server.heads if "\r\nx-api-key: letmein\r\n" not in head] == []


async def test_they_are_not_sent_to_another_server_of_its_metrics(
    vllm_server: PageServer, other: PageServer, clock: MonotonicClock
) -> None:
    other.pages = {"/metrics": vllm_server.pages["/metrics"]}
    handle = await attach(vllm_server, clock, metrics_url=other.url)
    await handle.sample()
    await handle.stop()
    assert other.heads
    assert [head for head in other.heads if "letmein" in head] == []


async def test_an_authorization_of_the_user_replaces_that_of_the_key(
    vllm_server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "sk-1")
    config = EngineConfig(name="vllm", model="", url=vllm_server.url, api_key_env="ACME_KEY")
    handle = await attach_engine(config, clock, headers={"Authorization": "Basic Zm9v"})
    await handle.stop()
    assert set(vllm_server.authorization) == {"Basic Zm9v"}


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_a_given_model_needs_no_list(server: PageServer, clock: MonotonicClock, status: int) -> None:
    server.pages = {MODELS: (status, b'{"error": "no list"}'), "/health": (200, b"")}
    handle = await attach(server, clock, model="m")
    await handle.stop()
    assert handle.facts.model == "m"
    assert f"lists no models (HTTP {status}" in handle.remark
    assert handle.remark.endswith("'m' is taken as given")


async def test_a_model_of_a_wildcard_route_is_served(server: PageServer, clock: MonotonicClock) -> None:
    server.pages = {MODELS: listing("gpt-4o", "openai/*")}
    handle = await attach(server, clock, model="openai/x")
    await handle.stop()
    assert (handle.facts.model, handle.remark) == ("openai/x", "")


async def test_a_listed_name_with_brackets_is_served(server: PageServer, clock: MonotonicClock) -> None:
    server.pages = {MODELS: listing("m[fp8]", "b")}
    handle = await attach(server, clock, model="m[fp8]")
    await handle.stop()
    assert (handle.facts.model, handle.remark) == ("m[fp8]", "")


async def test_a_model_that_is_not_listed_is_sent_if_the_user_insists(
    server: PageServer, clock: MonotonicClock
) -> None:
    server.pages = {MODELS: listing("a", "b")}
    with pytest.raises(EngineError, match="does not serve 'm': it serves a, b; --engine openai takes a model as given"):
        await attach(server, clock, model="m")
    handle = await attach(server, clock, engine="openai", model="m")
    await handle.stop()
    assert handle.facts.model == "m"
    assert "it serves a, b; 'm' is taken as given" in handle.remark


async def test_a_list_of_models_may_be_a_bare_array(server: PageServer, clock: MonotonicClock) -> None:
    server.pages = {MODELS: (200, b'[{"id": "m", "object": "model"}]')}
    handle = await attach(server, clock)
    await handle.stop()
    assert handle.facts.model == "m"
