"""Lists of models in the forms that servers have, and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.engines.attach import attach_engine
from servetop.engines.control.model_list import default_model, model_names
from servetop.engines.handle import EngineHandle

if TYPE_CHECKING:
    from tests.engines.conftest import PageServer

ONE = b'{"data": [{"id": "m"}]}'


async def attached(server: PageServer, model: str = "", path: str = "") -> EngineHandle:
    handle = await attach_engine(EngineConfig(name="auto", url=server.url + path, model=model), MonotonicClock())
    await handle.stop()
    return handle


def test_a_list_may_be_an_array_of_names_or_have_other_keys() -> None:
    lists: list[object] = [
        [{"id": "m"}],
        ["m"],
        {"models": [{"name": "m"}]},
        {"data": ["m"]},
        {"object": "list", "data": None, "models": [{"name": "m"}]},
        {"data": [{"model": "m"}]},
    ]
    assert {model_names(each) for each in lists} == {("m",)}


def test_anything_else_has_no_names() -> None:
    others: list[object] = [None, 3, {"data": 3}, {"data": [None, {"id": 5}, []]}, [[]]]
    assert {model_names(each) for each in others} == {()}


def test_the_default_is_no_pattern() -> None:
    assert default_model(("openai/*", "m")) == "m"
    assert default_model(("openai/*",)) == "openai/*"


@pytest.mark.parametrize(
    ("path", "models", "url"),
    [
        ("/api/paas/v4", "/api/paas/v4/models", "/api/paas/v4"),
        ("/api/paas/v4/chat/completions", "/api/paas/v4/models", "/api/paas/v4"),
        ("/v1beta/openai/", "/v1beta/openai/models", "/v1beta/openai"),
        ("/inference", "/inference/models", "/inference/chat/completions"),
        ("", "/models", "/chat/completions"),
        ("/api/v1/services/llm/proxy", "/api/v1/services/llm/proxy/v1/models", "/api/v1/services/llm/proxy/v1"),
        ("/v1?api-version=1", "/v1/models?api-version=1", "?api-version=1"),
    ],
)
async def test_the_api_is_found_below_a_base_path(server: PageServer, path: str, models: str, url: str) -> None:
    server.pages = {models: (200, ONE)}
    handle = await attached(server, path=path)
    assert (handle.facts.model, handle.facts.url) == ("m", server.url + url)


async def test_the_address_of_a_missing_list_is_named_as_it_was_asked(server: PageServer) -> None:
    server.pages = {"/health?code=abc": (200, b"")}
    with pytest.raises(EngineError) as caught:
        await attached(server, path="/api/v3?code=abc")
    assert f"{server.url}/api/v3/models lists no models (HTTP 404" in str(caught.value)
    handle = await attached(server, "m", path="/api/v3?code=abc")
    assert handle.remark.startswith(f"{server.url}/api/v3/models lists no models")


async def test_a_redirect_of_the_list_is_named_without_its_secrets(server: PageServer) -> None:
    server.pages = {"/v1/models": (308, b"")}
    server.headers = {"/v1/models": "Location: https://me:pw@other.example/v1/models?sig=abc\r\n"}
    with pytest.raises(EngineError) as caught:
        await attached(server)
    text = str(caught.value)
    assert "HTTP 308: redirects to https://other.example/v1/models?sig=…" in text
    assert "pw" not in text
