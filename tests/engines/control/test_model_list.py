"""The list of models is advice: a server can be measured that lists none, others, or in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.engines.attach import attach_engine
from servetop.engines.control.model_list import model_names
from servetop.engines.handle import EngineHandle

if TYPE_CHECKING:
    from tests.engines.conftest import PageServer


async def attached(server: PageServer, model: str, path: str = "") -> EngineHandle:
    config = EngineConfig(name="auto", url=server.url + path, model=model)
    handle = await attach_engine(config, MonotonicClock())
    await handle.stop()
    return handle


@pytest.mark.parametrize(
    ("status", "body", "remark"),
    [
        (401, b"{}", "does not list models (HTTP 401)"),
        (403, b"{}", "does not list models (HTTP 403)"),
        (404, b"{}", "does not list models (HTTP 404)"),
        (500, b"oops", "does not list models (HTTP 500)"),
        (200, b"<html>", "does not list openai/x"),
        (200, b'{"data": []}', "does not list openai/x"),
        (200, b'{"data": [{"id": "gpt-4o"}, {"id": "openai/*"}]}', "does not list openai/x"),
        (200, b'[{"id": "y"}]', "does not list openai/x"),
        (200, b'["openai/x"]', ""),
    ],
)
async def test_a_named_model_is_used_whatever_the_list(
    server: PageServer, status: int, body: bytes, remark: str
) -> None:
    server.pages = {"/v1/models": (status, body)}
    handle = await attached(server, "openai/x")
    assert handle.facts.model == "openai/x"
    assert (remark in handle.remark) if remark else not handle.remark


async def test_an_engine_with_a_complete_list_still_refuses_a_misspelled_model(vllm_server: PageServer) -> None:
    with pytest.raises(EngineError, match="does not serve 'no/model'"):
        await attached(vllm_server, "no/model")


@pytest.mark.parametrize(
    "body",
    [b'[{"id": "m"}]', b'["m"]', b'{"models": [{"name": "m"}]}', b'{"data": ["m"]}', b'{"data": [{"id": "a/*"}, "m"]}'],
)
async def test_a_list_in_another_form_names_the_default_model(server: PageServer, body: bytes) -> None:
    server.pages = {"/v1/models": (200, body)}
    assert (await attached(server, "")).facts.model == "m"


def test_a_list_of_anything_else_has_no_names() -> None:
    others: list[object] = [None, 3, {"data": 3}, {"data": [None, {"id": 5}, []]}, [[]]]
    assert {model_names(each) for each in others} == {()}


@pytest.mark.parametrize(("path", "models"), [("/inference", "/inference/models"), ("", "/models")])
async def test_an_api_without_a_version_is_found_by_its_list(server: PageServer, path: str, models: str) -> None:
    server.pages = {models: (200, b'{"data": [{"id": "m"}]}')}
    handle = await attached(server, "", path)
    assert handle.facts.url == f"{server.url}{path}/chat/completions"


async def test_a_redirect_of_the_list_is_named_without_its_secrets(server: PageServer) -> None:
    server.pages = {"/v1/models": (308, b"")}
    server.headers = {"/v1/models": "Location: https://me:pw@other.example/v1/models?sig=abc\r\n"}
    with pytest.raises(EngineError) as caught:
        await attached(server, "")
    text = str(caught.value)
    assert "redirects to https://other.example/v1/models?sig=… (HTTP 308)" in text
    assert "pw" not in text
