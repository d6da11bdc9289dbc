"""The simulated dialect of llama-server, compared with captured responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from servetop.simulator.dialects.server_dialect import EmulationOptions
from tests.simulator.dialects.captured import body, captured_events, keys_of
from tests.simulator.dialects.served import events, names, samples, served

SETTINGS: dict[str, Any] = {"kv_blocks": 4096, "max_num_seqs": 4}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served("llama.cpp", **SETTINGS) as client:
        yield client


def complete(client: httpx.Client, path: str = "/completion", **more: Any) -> httpx.Response:
    request = {"prompt": "hello", "n_predict": 5, "ignore_eos": True, **more}
    return client.post(path, json=request)


def chat(client: httpx.Client, **more: Any) -> httpx.Response:
    messages = [{"role": "user", "content": "hello"}]
    return complete(client, "/v1/chat/completions", messages=messages, max_tokens=5, **more)


def test_a_native_stream_has_the_captured_keys(client: httpx.Client) -> None:
    real = captured_events("llama.cpp/completion_stream.txt")
    simulated = events(complete(client, stream=True))
    assert len(simulated) == len(real) == 6
    assert [list(event) for event in simulated[:-1]] == [list(event) for event in real[:-1]]
    assert list(simulated[-1]) == list(real[-1])
    assert set(simulated[-1]["timings"]) == set(real[-1]["timings"])
    assert (simulated[-1]["stop"], simulated[-1]["stop_type"], simulated[-1]["tokens_predicted"]) == (True, "limit", 5)


def test_a_text_stream_has_the_captured_keys(client: httpx.Client) -> None:
    real = captured_events("llama.cpp/v1_completions_stream.txt")
    simulated = events(complete(client, "/v1/completions", stream=True), done=True)
    assert [keys_of(event) for event in simulated] == [keys_of(event) for event in real]
    assert simulated[-1]["usage"]["completion_tokens"] == 5
    assert [event["timings"]["predicted_n"] for event in simulated] == [1, 2, 3, 4, 5, 5]


def test_a_chat_stream_has_the_captured_keys(client: httpx.Client) -> None:
    real = captured_events("llama.cpp/chat_stream.txt")
    simulated = events(chat(client, stream=True, stream_options={"include_usage": True}), done=True)
    assert [keys_of(event) for event in simulated] == [keys_of(event) for event in real]
    assert simulated[0]["choices"][0]["delta"]["content"] is None
    unasked = events(chat(client, stream=True), done=True)
    assert unasked[-1]["choices"][0]["finish_reason"] == "length"
    assert unasked[-1]["timings"]["predicted_n"] == 5


def test_complete_responses_have_the_captured_keys(client: httpx.Client) -> None:
    whole = complete(client, "/v1/completions").json()
    assert keys_of(whole) == keys_of(json.loads(body("llama.cpp/v1_completions_nonstream.txt")))
    native = complete(client).json()
    assert len(native["content"].split()) == native["tokens_predicted"] == 5
    assert chat(client).json()["choices"][0]["message"]["role"] == "assistant"


@pytest.mark.parametrize(
    ("path", "name"),
    [("/health", "health_idle"), ("/slots", "slots_idle"), ("/v1/models", "v1_models_idle"), ("/props", "props_idle")],
)
def test_the_other_routes_have_only_keys_of_the_real_server(client: httpx.Client, path: str, name: str) -> None:
    simulated, real = client.get(path).json(), json.loads(body(f"llama.cpp/{name}.txt"))
    assert type(simulated) is type(real)
    if path == "/props":
        assert set(simulated) <= set(real)
        assert set(simulated["default_generation_settings"]["params"]) == set(
            real["default_generation_settings"]["params"]
        )
        assert (simulated["total_slots"], simulated["default_generation_settings"]["n_ctx"]) == (4, 1024)
    elif path == "/v1/models":
        assert set(simulated["data"][0]) == set(real["data"][0])
    else:
        assert simulated == real


def test_a_prompt_beyond_the_slot_is_rejected_as_by_the_real_server(client: httpx.Client) -> None:
    response = complete(client, prompt=[1] * 8000)
    assert response.status_code == 400
    assert response.json() == json.loads(body("llama.cpp/err_ctx_exceeded.txt"))


def test_a_completion_ends_when_its_slot_is_full(client: httpx.Client) -> None:
    assert complete(client, prompt=[1] * 1000, n_predict=500).json()["tokens_predicted"] == 24
    assert complete(client, prompt=[1] * 1000, n_predict=-1).json()["tokens_predicted"] == 24


def test_the_metrics_page_has_the_captured_names_and_counts_tokens() -> None:
    with served("llama.cpp", **SETTINGS) as client:
        idle = client.get("/metrics").text
        assert samples(idle) == samples(body("llama.cpp/metrics_idle.txt"))
        for _ in range(3):
            complete(client, prompt=[1] * 40, n_predict=6)
        page = client.get("/metrics").text
    assert list(names(page).items()) == list(names(body("llama.cpp/metrics_loaded.txt")).items())
    simulated = samples(page)
    assert (simulated["llamacpp:prompt_tokens_total"], simulated["llamacpp:tokens_predicted_total"]) == (120, 18)
    assert (simulated["llamacpp:n_decode_total"], simulated["llamacpp:n_tokens_max"]) == (18, 46)
    assert simulated["llamacpp:n_busy_slots_per_decode"] == 1


def test_slots_report_the_running_requests_and_their_lengths() -> None:
    with served("llama.cpp", **{**SETTINGS, "time_scale": 1.0}) as client:
        request = {"prompt": [1] * 100, "n_predict": 900, "ignore_eos": True, "stream": True}
        with client.stream("POST", "/completion", json=request) as reply:
            chunks = reply.iter_raw()
            next(chunks)
            slots = client.get("/slots").json()
    real = json.loads(body("llama.cpp/slots_loaded.json"))
    assert [slot["is_processing"] for slot in slots] == [True, False, False, False]
    assert keys_of(slots[0]) == keys_of(real[0])
    decoded = slots[0]["next_token"][0]["n_decoded"]
    assert slots[0]["n_prompt_tokens"] == 100 + decoded
    assert slots[0]["next_token"][0]["n_remain"] == 900 - decoded


def test_without_metrics_the_page_explains_how_to_enable_them() -> None:
    with served("llama.cpp", EmulationOptions(metrics=False), **SETTINGS) as client:
        response = client.get("/metrics")
        assert response.status_code == 501
        assert "--metrics" in response.json()["error"]["message"]
        assert client.get("/props").json()["endpoint_metrics"] is False
