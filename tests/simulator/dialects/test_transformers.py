"""The simulated dialect of `transformers serve`, compared with captured responses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.simulator.dialects.captured import body, captured_events, keys_of
from tests.simulator.dialects.served import events, served

MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served("transformers") as client:
        yield client


def test_a_text_stream_has_the_captured_keys_and_no_done(client: httpx.Client) -> None:
    body = {"prompt": "hello", "max_tokens": 6, "seed": 1, "stream": True}
    received = events(client.post("/v1/completions", json=body))
    real = captured_events("transformers/cb_completions_stream.txt")
    assert [keys_of(event) for event in received] == [keys_of(event) for event in real]
    assert received[-1]["usage"] == {"prompt_tokens": 2, "total_tokens": 8, "completion_tokens": 6}
    assert received[0]["model"] == "tiny@main"


def test_a_chat_stream_has_the_captured_keys_and_no_done(client: httpx.Client) -> None:
    real = captured_events("transformers/cb_chat_stream.txt")
    body = {"messages": MESSAGES, "max_tokens": len(real) - 2, "seed": 1, "stream": True}
    received = events(client.post("/v1/chat/completions", json=body))
    assert [keys_of(event) for event in received] == [keys_of(event) for event in real]


def test_a_complete_response_has_the_captured_keys(client: httpx.Client) -> None:
    whole = client.post("/v1/completions", json={"prompt": "hello", "max_tokens": 6}).json()
    assert keys_of(whole) == keys_of(json.loads(body("transformers/cb_completions_nonstream.txt")))
    chat = client.post("/v1/chat/completions", json={"messages": MESSAGES, "max_tokens": 2}).json()
    assert chat["choices"][0]["message"]["role"] == "assistant"


def test_an_unknown_field_is_rejected_with_the_captured_text(client: httpx.Client) -> None:
    response = client.post("/v1/completions", json={"prompt": "x", "ignore_eos": True})
    assert (response.status_code, response.json()) == (422, json.loads(body("transformers/cb_err_unknown_param.txt")))


def test_there_are_no_metrics_and_no_model_list(client: httpx.Client) -> None:
    assert client.get("/metrics").status_code == 404
    assert client.get("/v1/models").status_code == 500
    assert client.get("/health").json() == {"status": "ok"}
