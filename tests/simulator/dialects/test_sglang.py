"""The simulated dialect of SGLang."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from servetop.simulator.dialects.server_dialect import EmulationOptions
from tests.simulator.dialects.served import events, names, samples, served

LABELS = "unified tiny 0 0"
GAUGES = {
    *("sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "sglang:num_used_tokens"),
    *("sglang:kv_used_tokens", "sglang:kv_available_tokens", "sglang:max_total_num_tokens", "sglang:num_pages"),
    *("sglang:page_size", "sglang:num_retracted_reqs", "sglang:gen_throughput", "sglang:cache_hit_rate"),
}
COUNTERS = {
    *("sglang:prompt_tokens_total", "sglang:generation_tokens_total", "sglang:cached_tokens_total"),
    *("sglang:num_requests_total", "sglang:num_aborted_requests_total", "sglang:num_retracted_requests_total"),
}
HISTOGRAMS = {
    *("sglang:time_to_first_token_seconds", "sglang:inter_token_latency_seconds"),
    *("sglang:e2e_request_latency_seconds", "sglang:queue_time_seconds"),
}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with served("sglang") as client:
        yield client


def generate(client: httpx.Client, tokens: int = 4, **more: Any) -> httpx.Response:
    body = {"text": "four words of text", "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True}, **more}
    return client.post("/generate", json=body)


def test_each_event_of_a_native_stream_has_all_text_so_far(client: httpx.Client) -> None:
    received = events(generate(client, stream=True), done=True)
    assert [len(event["text"].split()) for event in received] == [1, 2, 3, 4]
    assert all(after["text"].startswith(before["text"]) for before, after in itertools.pairwise(received))
    assert [event["meta_info"]["completion_tokens"] for event in received] == [1, 2, 3, 4]
    assert [event["meta_info"]["finish_reason"] for event in received[:-1]] == [None] * 3
    assert received[-1]["meta_info"]["finish_reason"] == {"type": "length", "length": 4}
    whole = generate(client).json()
    assert (len(whole["text"].split()), whole["meta_info"]["prompt_tokens"]) == (4, 5)


def test_openai_streams_end_with_done_and_have_usage_on_request(client: httpx.Client) -> None:
    body = {"prompt": "x", "max_tokens": 2, "ignore_eos": True, "stream": True}
    received = events(client.post("/v1/completions", json=body), done=True)
    assert [event["choices"][0]["finish_reason"] for event in received] == [None, None, "length"]
    chat = {**body, "messages": [{"role": "user", "content": "x"}], "stream_options": {"include_usage": True}}
    role, *_, usage = events(client.post("/v1/chat/completions", json=chat), done=True)
    assert role["choices"][0]["delta"]["role"] == "assistant"
    assert usage["usage"]["completion_tokens"] == 2


def test_the_metrics_page_has_sglangs_names_and_counts_tokens(client: httpx.Client) -> None:
    for _ in range(3):
        generate(client, 6)
    page = client.get("/metrics").text
    types = {"gauge": GAUGES, "counter": COUNTERS, "histogram": HISTOGRAMS}
    assert {kind: {name for name, its in names(page).items() if its == kind} for kind in types} == types
    received = samples(page)
    assert received[f"sglang:generation_tokens_total {LABELS}"] == 18
    assert received[f"sglang:prompt_tokens_total {LABELS}"] == 15
    assert received[f"sglang:num_requests_total {LABELS}"] == 3
    assert received[f"sglang:inter_token_latency_seconds_count {LABELS}"] == 15
    assert received[f"sglang:max_total_num_tokens {LABELS}"] == 1600


def test_the_batch_limit_can_be_lowered_at_run_time(client: httpx.Client) -> None:
    state = {"server_args": {"pp_max_micro_batch_size": 3}}
    assert client.post("/set_internal_state", json=state).json()["updated"] is True
    info = client.get("/server_info").json()
    assert (info["max_running_requests"], info["internal_states"]) == (8, [{"pp_max_micro_batch_size": 3}])
    beyond = {"server_args": {"pp_max_micro_batch_size": 9}}
    assert client.post("/set_internal_state", json=beyond).json()["updated"] is False
    assert client.get("/get_server_info").json() == info


def test_the_other_routes_and_errors(client: httpx.Client) -> None:
    paths = ("/health", "/health_generate", "/ready", "/model_info", "/get_model_info", "/v1/models")
    assert [client.get(path).status_code for path in paths] == [200] * len(paths)
    assert client.get("/nowhere").json() == {"detail": "Not Found"}
    rejected = generate(client, 90000)
    assert (rejected.status_code, rejected.json()["object"]) == (400, "error")


def test_without_metrics_there_is_no_metrics_page() -> None:
    with served("sglang", EmulationOptions(metrics=False)) as client:
        assert client.get("/metrics").status_code == 404
        assert client.get("/server_info").json()["enable_metrics"] is False
