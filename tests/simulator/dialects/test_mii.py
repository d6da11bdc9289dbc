"""The simulated dialect of DeepSpeed-MII."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.simulator.dialects.served import events, served


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served("mii") as client:
        yield client


def test_a_native_stream_is_lists_of_one_text_and_done(client: httpx.Client) -> None:
    body = {"prompt": "x", "max_tokens": 3, "ignore_eos": True}
    received = events(client.post("/generate", json={**body, "stream": True}), done=True)
    assert [(list(event), len(event["text"])) for event in received] == [(["text"], 1)] * 3
    (text,) = client.post("/generate", json=body).json()["text"]
    assert len(text.split()) == 3


def test_the_openai_routes(client: httpx.Client) -> None:
    body = {"prompt": "x", "max_tokens": 2, "ignore_eos": True, "stream": True}
    received = events(client.post("/v1/completions", json=body), done=True)
    assert [event["choices"][0]["finish_reason"] for event in received] == [None, "length"]
    chat = {**body, "messages": [{"role": "user", "content": "x"}]}
    role, *_ = events(client.post("/v1/chat/completions", json=chat), done=True)
    assert role["choices"][0]["delta"] == {"role": "assistant"}
    assert client.post("/v1/completions", json={**body, "stream": False}).json()["usage"]["completion_tokens"] == 2


def test_there_are_no_metrics(client: httpx.Client) -> None:
    response = client.get("/metrics")
    assert (response.status_code, response.json()) == (404, {"detail": "Not Found"})
    assert client.get("/health").json() == {"status": "ok"}
    assert client.post("/v1/completions", json={"prompt": "x", "max_tokens": 0}).json()["object"] == "error"
