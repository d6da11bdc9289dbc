"""The simulator's HTTP server: vLLM's API, metrics page, errors and connection handling."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.simulator.server_process import start, stop

CHUNK_KEYS = {"id", "object", "created", "model", "choices"}


def complete(client: httpx.Client, **body: Any) -> httpx.Response:
    return client.post("/v1/completions", json={"model": "tiny", "prompt": "a prompt", **body})


def events(client: httpx.Client, path: str = "/v1/completions", **body: Any) -> list[dict[str, Any]]:
    response = client.post(path, json={"model": "tiny", "stream": True, **body})
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def metrics(client: httpx.Client) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    return {
        sample.name + sample.labels.get("finished_reason", sample.labels.get("source", "")): sample.value
        for sample in samples
    }


def test_a_stream_has_one_token_per_event_then_usage_then_done(client: httpx.Client) -> None:
    *tokens, usage = events(
        client, prompt=[1, 2, 3], max_tokens=5, ignore_eos=True, stream_options={"include_usage": True}
    )
    assert len(tokens) == 5
    assert all(set(token) == CHUNK_KEYS and token["object"] == "text_completion" for token in tokens)
    assert all(token["choices"][0]["text"].strip() for token in tokens)
    assert [token["choices"][0]["finish_reason"] for token in tokens] == [None] * 4 + ["length"]
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 3, "total_tokens": 8, "completion_tokens": 5}


def test_events_have_the_same_fields_as_vllms(client: httpx.Client) -> None:
    event, last = events(client, prompt="x", max_tokens=2, ignore_eos=True)
    common = {"index", "logprobs", "finish_reason", "token_ids"}
    assert set(event["choices"][0]) == common | {"text", "stop_reason", "prompt_token_ids"} == set(last["choices"][0])
    message = {"role": "user", "content": "x"}
    _, event, last = events(client, "/v1/chat/completions", messages=[message], max_tokens=2, ignore_eos=True)
    assert set(event["choices"][0]) == common | {"delta"}
    assert set(last["choices"][0]) == common | {"delta", "stop_reason"}


def test_the_usage_contains_the_cached_prompt_tokens() -> None:
    process, url = start("--model", "opt-125m", "--engine-profile", "vllm-current")
    with httpx.Client(base_url=url) as client:
        body = {"prompt": [7] * 50, "max_tokens": 2, "ignore_eos": True}
        usages = [client.post("/v1/completions", json=body).json()["usage"] for _ in range(2)]
        assert [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages] == [0, 48]
        seen = metrics(client)
    assert (seen["vllm:prefix_cache_hits_total"], seen["vllm:prefix_cache_queries_total"]) == (48, 100)
    sources = ("local_compute", "local_cache_hit", "external_kv_transfer")
    assert [seen[f"vllm:prompt_tokens_by_source_total{source}"] for source in sources] == [52, 48, 0]
    assert seen["vllm:prompt_tokens_cached_total"] == 48
    assert stop(process) == 0


def test_each_completion_can_report_its_own_times() -> None:
    process, url = start("--model", "opt-125m", "--served-model-name", "tiny", "--enable-per-request-metrics")
    names = {"queue_time_ms", "time_to_first_token_ms", "generation_time_ms"}
    with httpx.Client(base_url=url) as client:
        body: dict[str, Any] = {"prompt": "x", "max_tokens": 5, "ignore_eos": True}
        *tokens, usage = events(client, stream_options={"include_usage": True}, **body)
        whole = complete(client, **body).json()
    assert all("metrics" not in token for token in tokens)
    for times in (usage["metrics"], whole["metrics"]):
        assert set(times) == names
        assert times["queue_time_ms"] >= 0
        assert times["time_to_first_token_ms"] > 0
        assert times["generation_time_ms"] > 0
    assert stop(process) == 0


def test_a_chat_stream_starts_with_the_role(client: httpx.Client) -> None:
    message = {"role": "user", "content": "hello there"}
    first, *rest = events(client, "/v1/chat/completions", messages=[message], max_tokens=3, ignore_eos=True)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [event["choices"][0]["delta"].keys() for event in rest] == [{"content"}] * 3
    assert rest[-1]["choices"][0]["finish_reason"] == "length"


def test_continuous_usage_counts_up(client: httpx.Client) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    seen = events(client, prompt="x", max_tokens=3, ignore_eos=True, stream_options=options)
    assert [event["usage"]["completion_tokens"] for event in seen] == [1, 2, 3, 3]


def test_a_complete_response_has_text_and_usage(client: httpx.Client) -> None:
    body = complete(client, max_tokens=4, ignore_eos=True).json()
    assert len(body["choices"][0]["text"].split()) == 4
    assert body["usage"]["completion_tokens"] == 4
    chat = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2})
    message = chat.json()["choices"][0]["message"]
    assert message["role"] == "assistant"
    assert set(message) == {"role", "content", "refusal", "tool_calls"}


def test_without_ignore_eos_some_completions_stop_and_some_reach_the_limit(client: httpx.Client) -> None:
    completions = [complete(client, max_tokens=200).json() for _ in range(12)]
    reasons = {completion["choices"][0]["finish_reason"] for completion in completions}
    assert reasons == {"stop", "length"}
    assert all(completion["usage"]["completion_tokens"] <= 200 for completion in completions)
    seeded = [complete(client, max_tokens=500, seed=7).json()["usage"] for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert complete(client, max_tokens=150, min_tokens=150).json()["usage"]["completion_tokens"] == 150


@pytest.mark.parametrize(("prompt", "count"), [([5] * 17, 17), ([[5] * 17], 17), ("abcd" * 4, 4), (["abcde"], 2)])
def test_the_usage_of_prompts_matches_tokenize(client: httpx.Client, prompt: Any, count: int) -> None:
    tokenized = client.post("/tokenize", json={"model": "tiny", "prompt": prompt}).json()
    assert tokenized["count"] == len(tokenized["tokens"]) == count
    assert complete(client, prompt=prompt, max_tokens=1).json()["usage"]["prompt_tokens"] == count


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"model": "nope"}, 404, "The model `nope` does not exist."),
        ({"max_tokens": 600000}, 400, "max_tokens=600000 cannot be greater than max_model_len=4096"),
        ({"prompt": [1] * 4000, "max_tokens": 200}, 400, "This model's maximum context length is 4096 tokens"),
        ({"prompt": [1] * 1500, "max_tokens": 200}, 400, "KV cache holds 1600 tokens"),
        ({"max_tokens": 0}, 400, "max_tokens must be at least 1"),
        ({"max_tokens": "many"}, 400, "max_tokens should be a valid integer"),
        ({"n": 0}, 400, "n must be at least 1"),
        ({"n": 2, "best_of": 3}, 400, "best_of must equal n"),
        ({"n": 200, "prompt": ["a", "b"]}, 400, "at most 256 completions per request"),
        ({"prompt": ["a", ""]}, 400, "cannot be empty"),
        ({"prompt": ""}, 400, "cannot be empty"),
        ({"prompt": {"a": 1}}, 400, "string or a list of token ids"),
    ],
)
def test_errors_have_vllms_format(client: httpx.Client, body: dict[str, Any], status: int, expected: str) -> None:
    response = complete(client, **body)
    assert response.status_code == status
    error = response.json()["error"]
    assert expected in error["message"]
    assert error["code"] == status
    assert set(error) == {"message", "type", "param", "code"}


def test_broken_requests_get_an_error_response(client: httpx.Client) -> None:
    assert client.post("/v1/completions", content=b"{not json").status_code == 400
    assert client.post("/v1/completions", content=b"[1]").status_code == 400
    assert client.get("/nowhere").status_code == 404
    assert client.get("/v1/completions").status_code == 405
    assert client.post("/v1/chat/completions", json={"messages": []}).status_code == 400
    with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as raw:
        raw.sendall(b"NOT HTTP\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 400 ")


def exchange(client: httpx.Client, *sent: bytes) -> bytes:
    """Everything received on one connection until the server closes it."""
    with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as raw:
        raw.settimeout(20)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for data in sent:
                raw.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            return b"".join(iter(lambda: raw.recv(65536), b""))
    return b""


@pytest.mark.parametrize("more", [b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /version HTTP/1.1\r\n\r\n"])
def test_an_upgrade_offer_is_ignored_and_its_request_gets_one_response(client: httpx.Client, more: bytes) -> None:
    offer = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    received = exchange(client, offer + b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + more)
    assert received.count(b"HTTP/1.1 ") == 1
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert b'{"version":' in received


def test_a_header_section_without_end_is_refused_with_431(client: httpx.Client) -> None:
    received = exchange(client, b"GET /version HTTP/1.1\r\nx-endless: ", *[b"a" * 65536] * 128)
    assert received.count(b"HTTP/1.1 ") <= 1
    assert received == b"" or received.startswith(b"HTTP/1.1 431 Request Header Fields Too Large")
    assert client.get("/version").status_code == 200


def test_many_header_fields_are_refused_with_431(client: httpx.Client) -> None:
    head = b"GET /version HTTP/1.1\r\n" + b"".join(b"x-%d: %b\r\n" % (each, b"v" * 80) for each in range(1000))
    received = exchange(client, head)
    assert received.startswith(b"HTTP/1.1 431 ")
    assert b"the header section is larger than 64 KiB" in received


def test_the_small_routes(client: httpx.Client) -> None:
    assert client.get("/health").status_code == 200
    assert client.get("/ping").status_code == 200
    assert client.get("/version").json() == {"version": "0.32.0"}
    (model,) = client.get("/v1/models").json()["data"]
    assert (model["id"], model["max_model_len"]) == ("tiny", 4096)


def test_the_metrics_page_counts_what_clients_received(client: httpx.Client) -> None:
    before = metrics(client)
    for _ in range(3):
        complete(client, prompt=[1] * 40, max_tokens=6, ignore_eos=True)
    after = metrics(client)
    growth = {name: after[name] - before[name] for name in after}
    assert growth["vllm:prompt_tokens_total"] == 120
    assert growth["vllm:generation_tokens_total"] == 18
    assert growth["vllm:request_success_totallength"] == 3
    assert growth["vllm:time_to_first_token_seconds_count"] == 3
    assert growth["vllm:inter_token_latency_seconds_count"] == 15
    assert growth["vllm:e2e_request_latency_seconds_count"] == 3
    assert growth["servetop_sim_token_lateness_seconds_count"] == 18
    assert after["vllm:num_requests_running"] == after["vllm:kv_cache_usage_perc"] == 0
    assert 'num_gpu_blocks="100"' in client.get("/metrics").text


def test_the_batch_limit_changes_while_it_runs(client: httpx.Client) -> None:
    assert client.get("/servetop/config").json()["max_num_seqs"] == 8
    assert client.post("/servetop/config", json={"max_num_seqs": 3}).json()["max_num_seqs"] == 3
    assert metrics(client)["servetop_sim_max_num_seqs"] == 3
    assert client.post("/servetop/config", json={"max_num_seqs": 0}).status_code == 400
    assert client.post("/servetop/config", json={"kv_blocks": 5}).status_code == 400
    client.post("/servetop/config", json={"max_num_seqs": 8})


def test_a_client_that_disconnects_frees_its_blocks(client: httpx.Client) -> None:
    before = metrics(client)["vllm:request_success_totalabort"]
    body = {"model": "tiny", "prompt": [1] * 100, "max_tokens": 1400, "ignore_eos": True, "stream": True}
    with httpx.Client(base_url=client.base_url) as leaver, leaver.stream("POST", "/v1/completions", json=body) as reply:
        chunks = reply.iter_raw()
        next(chunks)
        assert metrics(client)["vllm:num_requests_running"] == 1
    while (now := metrics(client))["vllm:num_requests_running"]:
        pass
    assert now["vllm:kv_cache_usage_perc"] == 0
    assert now["vllm:request_success_totalabort"] == before + 1


def test_one_connection_serves_requests_in_order(client: httpx.Client) -> None:
    request = b'{"prompt":"x","max_tokens":1,"ignore_eos":true}'
    head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(request)
    with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as raw:
        raw.sendall((head + request) * 40 + b"GET /version HTTP/1.1\r\nconnection: close\r\n\r\n")
        received = b"".join(iter(lambda: raw.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200 OK") == 41
    assert received.endswith(b'{"version":"0.32.0"}')


def test_garbage_after_a_request_ends_the_stream_and_frees_its_blocks(client: httpx.Client) -> None:
    request = b'{"prompt":"x","max_tokens":1500,"ignore_eos":true,"stream":true}'
    head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(request)
    with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as raw:
        raw.sendall(head + request)
        assert raw.recv(65536).startswith(b"HTTP/1.1 200 OK")
        raw.sendall(b"garbage\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while raw.recv(65536):
                pass
    while metrics(client)["vllm:num_requests_running"]:
        pass
    assert metrics(client)["vllm:kv_cache_usage_perc"] == 0
