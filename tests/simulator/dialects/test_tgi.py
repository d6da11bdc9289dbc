"""The simulated dialect of Text Generation Inference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from servetop.simulator.dialects.server_dialect import EmulationOptions
from tests.simulator.dialects.served import events, names, samples, served

RESPONSE_HEADERS = {"x-queue-time", "x-inference-time", "x-time-per-token", "x-prompt-tokens", "x-generated-tokens"}
NAMES = {  # of those in the router's and backend's source, the ones that a simulator can count
    "tgi_batch_max_total_tokens": "gauge",
    "tgi_queue_size": "gauge",
    "tgi_batch_current_size": "gauge",
    "tgi_batch_current_max_tokens": "gauge",
    "tgi_request_count": "counter",
    "tgi_request_success": "counter",
    "tgi_batch_inference_count": "counter",
    "tgi_batch_inference_success": "counter",
    "tgi_request_duration": "histogram",
    "tgi_request_queue_duration": "histogram",
    "tgi_request_inference_duration": "histogram",
    "tgi_request_mean_time_per_token_duration": "histogram",
    "tgi_request_generated_tokens": "histogram",
    "tgi_request_input_length": "histogram",
    "tgi_request_max_new_tokens": "histogram",
    "tgi_request_validation_duration": "histogram",
    "tgi_batch_next_size": "histogram",
    "tgi_batch_inference_duration": "histogram",
    "tgi_batch_forward_duration": "histogram",
}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with served("tgi") as client:
        yield client


def generate(client: httpx.Client, path: str = "/generate", **parameters: Any) -> httpx.Response:
    return client.post(path, json={"inputs": "four words of text", "parameters": parameters})


def test_a_native_stream_has_one_event_per_token_and_the_text_in_the_last(client: httpx.Client) -> None:
    *before, last = events(generate(client, "/generate_stream", max_new_tokens=40, details=True), prefix="data:")
    assert [event["index"] for event in [*before, last]] == list(range(1, len(before) + 2))
    keys = {"index", "token", "generated_text", "details"}
    assert all(set(event) == keys and event["generated_text"] is event["details"] is None for event in before)
    assert set(last["token"]) == {"id", "text", "logprob", "special"}
    assert last["generated_text"] == "".join(event["token"]["text"] for event in [*before, last])
    counts = last["details"]
    assert (counts["generated_tokens"], counts["input_length"]) == (len(before) + 1, 5)
    assert counts["finish_reason"] == ("length" if len(before) == 39 else "eos_token")


def test_without_details_a_native_stream_has_no_counts(client: httpx.Client) -> None:
    *_, last = events(generate(client, "/generate_stream", max_new_tokens=3), prefix="data:")
    assert last["generated_text"]
    assert last["details"] is None


def test_a_complete_response_has_the_counts_in_its_headers(client: httpx.Client) -> None:
    response = generate(client, max_new_tokens=3)
    assert response.json()["details"] is None
    assert set(response.headers) >= RESPONSE_HEADERS
    assert (response.headers["x-prompt-tokens"], response.headers["x-generated-tokens"]) == ("5", "3")
    details = generate(client, max_new_tokens=3, details=True).json()["details"]
    assert [token["text"][0] for token in details["tokens"]] == [" "] * 3


def test_openai_streams_end_with_done_and_text_streams_always_have_usage(client: httpx.Client) -> None:
    body = {"model": "any", "prompt": "x", "max_tokens": 2, "stream": True}
    first, last = events(client.post("/v1/completions", json=body).raise_for_status(), prefix="data:", done=True)
    assert first["choices"][0]["finish_reason"] == ""
    assert "usage" not in first
    assert last["usage"] == {"prompt_tokens": 1, "total_tokens": 3, "completion_tokens": 2}
    messages = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "stream": True}
    _, last = events(client.post("/v1/chat/completions", json=messages), prefix="data:", done=True)
    assert (last["usage"], last["choices"][0]["finish_reason"]) == (None, "length")
    generation_route = {**messages, "stream_options": {"include_usage": True}}
    _, last = events(client.post("/v1/chat/completions", json=generation_route), prefix="data:", done=True)
    assert last["usage"]["completion_tokens"] == 2
    whole = client.post("/v1/chat/completions", json={**messages, "stream": False})
    assert whole.json()["choices"][0]["message"]["role"] == "assistant"
    assert set(whole.headers) >= RESPONSE_HEADERS


def test_ignore_eos_is_ignored() -> None:
    with served("tgi") as client:
        body = {"prompt": "x", "max_tokens": 200, "ignore_eos": True, "min_tokens": 200}
        completions = [client.post("/v1/completions", json=body).json() for _ in range(12)]
    assert {completion["choices"][0]["finish_reason"] for completion in completions} == {"stop", "length"}


def test_before_the_first_request_the_page_has_only_the_token_budget() -> None:
    with served("tgi") as client:
        assert samples(client.get("/metrics").text) == {"tgi_batch_max_total_tokens": 1600}
        generate(client, max_new_tokens=5)
        assert names(client.get("/metrics").text) == NAMES


def test_the_page_counts_what_clients_received() -> None:
    with served("tgi") as client:
        received = [int(generate(client, max_new_tokens=30).headers["x-generated-tokens"]) for _ in range(3)]
        client.post("/generate", json={"inputs": "a" * 8000})
        metrics = samples(client.get("/metrics").text)
    assert metrics["tgi_request_generated_tokens_sum"] == sum(received)
    assert (metrics["tgi_request_count"], metrics["tgi_request_success"]) == (4, 3)
    assert metrics["tgi_request_failure validation"] == 1
    assert metrics["tgi_request_input_length_sum"] == 15
    assert metrics["tgi_request_max_new_tokens_sum"] == 90
    assert metrics["tgi_batch_inference_count prefill"] == 3
    assert metrics["tgi_batch_inference_count decode"] == sum(received) - 3
    assert (
        metrics["tgi_batch_current_size"] == metrics["tgi_batch_current_max_tokens"] == metrics["tgi_queue_size"] == 0
    )


def test_the_maximum_length_of_a_running_request_is_reserved() -> None:
    with served("tgi", time_scale=1.0) as client:
        body = {"inputs": "a" * 400, "parameters": {"max_new_tokens": 900}}
        with client.stream("POST", "/generate_stream", json=body) as reply:
            chunks = reply.iter_raw()
            next(chunks)
            metrics = samples(client.get("/metrics").text)
    assert metrics["tgi_batch_current_max_tokens"] == 1008  # 999 tokens in blocks of 16
    assert metrics["tgi_batch_current_size"] == 1


@pytest.mark.parametrize("path", ["/generate", "/v1/completions"])
def test_a_request_that_is_too_long_is_rejected_with_422(client: httpx.Client, path: str) -> None:
    body = {"inputs": "a" * 20000, "prompt": "a" * 20000, "parameters": {"max_new_tokens": 10}}
    response = client.post(path, json=body)
    assert response.status_code == 422
    assert set(response.json()) == {"error", "error_type"}
    assert response.json()["error_type"] == "validation"
    assert response.json()["error"].startswith("Input validation error: ")


def test_errors_of_a_native_stream_are_events(client: httpx.Client) -> None:
    response = client.post("/generate_stream", json={"inputs": "a" * 20000, "parameters": {"max_new_tokens": 10}})
    assert response.status_code == 200
    (event,) = events(response, prefix="data:")
    assert event["error_type"] == "validation"


def test_too_many_concurrent_requests_are_rejected_with_429() -> None:
    with served("tgi", EmulationOptions(max_concurrent_requests=1), time_scale=1.0) as client:
        body = {"inputs": "x", "parameters": {"max_new_tokens": 900}}
        with client.stream("POST", "/generate_stream", json=body) as reply:
            chunks = reply.iter_raw()
            next(chunks)
            refused = generate(client, max_new_tokens=1)
            assert refused.status_code == 429
            assert refused.json() == {"error": "Model is overloaded", "error_type": "overloaded"}
            assert samples(client.get("/metrics").text)["tgi_request_failure overloaded"] == 1


def test_the_other_routes_are_tgis_and_not_vllms(client: httpx.Client) -> None:
    info = client.get("/info").json()
    assert (info["model_id"], info["max_concurrent_requests"], info["max_total_tokens"]) == ("tiny", 128, 4096)
    assert client.get("/health").content == b""
    assert client.post("/generate", json={"inputs": 5}).status_code == 422
    assert [client.get(path).status_code for path in ("/version", "/servetop/config", "/load")] == [404] * 3


def test_the_compatible_route_returns_a_list_of_one(client: httpx.Client) -> None:
    (whole,) = generate(client, "/", max_new_tokens=5, details=True).json()
    assert set(whole) == {"generated_text", "details"}
    assert set(whole["details"]) == {"finish_reason", "generated_tokens", "seed", "prefill", "tokens"}
    streamed = client.post("/", json={"inputs": "x", "parameters": {"max_new_tokens": 3}, "stream": True})
    assert events(streamed, prefix="data:")[-1]["generated_text"]
