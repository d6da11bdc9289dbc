"""The simulated dialect of `trtllm-serve`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.simulator.dialects.served import events, samples, served

ITERATION_KEYS = {
    "iter",
    "iterLatencyMS",
    "timestamp",
    "gpuMemUsage",
    "cpuMemUsage",
    "pinnedMemUsage",
    "numActiveRequests",
    "numQueuedRequests",
    "numNewActiveRequests",
    "numCompletedRequests",
    "maxNumActiveRequests",
    "newActiveRequestsQueueLatencyMS",
    "maxBatchSizeStatic",
    "maxBatchSizeRuntime",
    "maxBatchSizeTunerRecommended",
    "maxNumTokensStatic",
    "maxNumTokensRuntime",
    "maxNumTokensTunerRecommended",
    "kvCacheStats",
    "inflightBatchingStats",
    "staticBatchingStats",
}
CACHE_KEYS = {
    "maxNumBlocks",
    "freeNumBlocks",
    "usedNumBlocks",
    "tokensPerBlock",
    "allocTotalBlocks",
    "allocNewBlocks",
    "reusedBlocks",
    "missedBlocks",
    "cacheHitRate",
}
BATCH_KEYS = {
    "numScheduledRequests",
    "numContextRequests",
    "numGenRequests",
    "numPausedRequests",
    "numCtxTokens",
    "microBatchId",
    "avgNumDecodedTokensPerIter",
}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with served("trtllm") as client:
        yield client


def complete(client: httpx.Client, **body: Any) -> httpx.Response:
    request = {"model": "tiny", "prompt": [1] * 30, "max_tokens": 10, "ignore_eos": True, **body}
    return client.post("/v1/completions", json=request)


def test_metrics_are_empty_until_a_request_has_finished_and_can_be_read_once(client: httpx.Client) -> None:
    assert client.get("/metrics").json() == []
    complete(client)
    iterations = client.get("/metrics").json()
    assert client.get("/metrics").json() == []
    assert len(iterations) == 10
    assert set(iterations[0]) == ITERATION_KEYS
    assert set(iterations[0]["kvCacheStats"]) == CACHE_KEYS
    assert set(iterations[0]["inflightBatchingStats"]) == BATCH_KEYS
    complete(client, max_tokens=4)
    assert [one["iter"] for one in client.get("/metrics").json()] == [11, 12, 13, 14]


def test_iteration_statistics_describe_the_batch(client: httpx.Client) -> None:
    complete(client)
    first, second, *_ = client.get("/metrics").json()
    assert first["inflightBatchingStats"]["numContextRequests"] == 1
    assert first["inflightBatchingStats"]["numCtxTokens"] == 30
    assert second["inflightBatchingStats"]["numGenRequests"] == second["numActiveRequests"] == 1
    assert second["kvCacheStats"]["maxNumBlocks"] == 100
    assert second["kvCacheStats"]["usedNumBlocks"] == 1  # of 64 tokens
    assert second["maxBatchSizeRuntime"] == 8
    assert second["iterLatencyMS"] > 0


def test_requests_paused_for_lack_of_memory_are_completed() -> None:
    with served("trtllm", kv_blocks=8, time_scale=0.2) as client, ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(complete, client, prompt=[1] * 60, max_tokens=250) for _ in range(4)]
        received = [response.result(30).json()["usage"]["completion_tokens"] for response in futures]
        iterations = client.get("/metrics").json()
    assert received == [250] * 4
    assert sum(one["inflightBatchingStats"]["numPausedRequests"] for one in iterations) > 0
    assert max(one["kvCacheStats"]["usedNumBlocks"] for one in iterations) == 8
    assert max(one["numQueuedRequests"] for one in iterations) > 0


def test_the_prometheus_page_counts_finished_requests(client: httpx.Client) -> None:
    for _ in range(3):
        complete(client)
    seen = samples(client.get("/prometheus/metrics").text)
    labels = "undefined undefined"
    assert seen[f"trtllm_request_success_total {labels.split()[0]} length undefined"] == 3
    assert seen[f"trtllm_prompt_tokens_total {labels}"] == 90
    assert seen[f"trtllm_generation_tokens_total {labels}"] == 30
    assert seen[f"trtllm_time_to_first_token_seconds_count {labels}"] == 3
    assert seen[f"trtllm_kv_cache_max_blocks {labels}"] == 100
    assert len(client.get("/perf_metrics").json()) == 3
    assert client.get("/perf_metrics").json() == []


def test_streams_end_with_done_and_have_usage_on_request(client: httpx.Client) -> None:
    seen = events(complete(client, max_tokens=2, stream=True, stream_options={"include_usage": True}), done=True)
    assert [event["choices"][0]["finish_reason"] for event in seen[:2]] == [None, "length"]
    assert seen[2]["usage"] == {"prompt_tokens": 30, "total_tokens": 32, "completion_tokens": 2}
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, "ignore_eos": True}
    role, *_, last = events(client.post("/v1/chat/completions", json={**chat, "stream": True}), done=True)
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert last["choices"][0]["finish_reason"] == "length"
    assert client.post("/v1/chat/completions", json=chat).json()["usage"]["completion_tokens"] == 2


def test_errors_have_no_enclosing_object(client: httpx.Client) -> None:
    response = complete(client, max_tokens=90000)
    assert response.status_code == 400
    assert set(response.json()) == {"object", "message", "type", "param", "code"}
    assert complete(client, model="nope").status_code == 404


def test_the_other_routes(client: httpx.Client) -> None:
    assert client.get("/version").json() == {"version": "1.2.1"}
    assert client.get("/health").status_code == 200
    assert client.get("/v1/models").json()["data"][0]["id"] == "tiny"
    assert client.get("/server_info").status_code == 200
    assert client.get("/servetop/config").status_code == 404
