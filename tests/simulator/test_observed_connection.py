"""The simulator notes of each request when it arrived, when its tokens were written, and how it ended."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.events import RequestRecord, RequestStatus
from servetop.simulator.dialects.registry import server_dialect_class
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.serve import SimulatorServer, write_log
from servetop.simulator.server.observed_connection import ProbeRequests, RequestLog
from tests.harness import wait_for
from tests.simulator.server_process import client_of

BODY = {"prompt": [1, 2, 3], "max_tokens": 5, "ignore_eos": True}


def observed_server(log: RequestLog, *, dialect: str = "vllm") -> SimulatorServer:
    spec = sim_spec(
        "llama-2-7b", gpu="a100-40", engine=server_dialect_class(dialect).profile, settings={"time_scale": 0.05}
    )
    server = SimulatorServer(spec, served_name="tiny", dialect=dialect)
    server.observe(log.connect, log=write_log)
    return server


def ended(log: RequestLog) -> list[RequestRecord]:
    """The requests, once the server has noted the end of each: its client may read the last byte before."""
    wait_for(lambda: not log.open_requests, seconds=20, what="the end of the requests")
    return log.records()


@pytest.fixture
def log(clock: MonotonicClock) -> RequestLog:
    return RequestLog(clock.now)


@pytest.fixture
def client(log: RequestLog) -> Iterator[httpx.Client]:
    with client_of(observed_server(log)) as client:
        yield client


def test_each_token_of_a_stream_is_a_chunk_between_arrival_and_end(
    client: httpx.Client, log: RequestLog, clock: MonotonicClock
) -> None:
    before = clock.now()
    client.post("/v1/completions", json={**BODY, "stream": True})
    (request,) = ended(log)
    after = clock.now()
    assert (request.status, request.prompt_tokens, request.output_tokens) == (RequestStatus.OK, 3, 5)
    assert request.chunk_tokens.tolist() == [1] * 5
    instants = [before, request.sent, request.headers_at, *request.chunk_times.tolist(), request.done_at, after]
    assert instants == sorted(instants, key=lambda at: at or 0.0)
    assert request.first_token_at == request.chunk_times[0]


def test_a_response_that_is_not_streamed_has_no_first_token(client: httpx.Client, log: RequestLog) -> None:
    client.post("/v1/completions", json=BODY)
    (request,) = ended(log)
    assert (request.chunk_tokens.tolist(), request.output_tokens, request.ttft, request.tpot) == ([], 5, None, None)
    assert request.e2el is not None


def test_several_completions_are_one_request(client: httpx.Client, log: RequestLog) -> None:
    client.post("/v1/completions", json={**BODY, "prompt": [[1, 2, 3], [4, 5]], "n": 2, "stream": True})
    (request,) = ended(log)
    assert (request.prompt_tokens, request.output_tokens, request.status) == (5, 20, RequestStatus.OK)


def test_a_rejected_request_failed_and_a_probe_is_another_one(client: httpx.Client, log: RequestLog) -> None:
    client.post("/v1/completions", json={**BODY, "max_tokens": -1})
    for _ in range(2):
        client.get("/v1/models")
    client.post("/flush_cache")
    (request,) = ended(log)
    assert (request.status, request.http_status, request.error) == (RequestStatus.ERROR, 400, "HTTP 400")
    wait_for(lambda: len(log.others()) == 2, seconds=20, what="the end of the last request")
    assert log.others() == (
        ProbeRequests(method="GET", path="/v1/models", status=200, count=2),
        ProbeRequests(method="POST", path="/flush_cache", status=404, count=1),
    )


def test_a_client_that_disconnects_cancels_its_request(client: httpx.Client, log: RequestLog) -> None:
    connection = http.client.HTTPConnection(urlsplit(str(client.base_url)).netloc, timeout=20)
    connection.request("POST", "/v1/completions", json.dumps({**BODY, "max_tokens": 2000, "stream": True}))
    response = connection.getresponse()
    assert response.readline().startswith(b"data: {")
    assert log.records()[0].status is RequestStatus.CANCELLED  # still in progress
    response.close()
    connection.close()
    (request,) = ended(log)
    assert request.status is RequestStatus.CANCELLED
    assert 1 <= request.output_tokens < 2000


@pytest.mark.parametrize(
    ("dialect", "path", "body"),
    [
        (
            "vllm",
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, "ignore_eos": True},
        ),
        ("sglang", "/generate", {"text": "hello", "sampling_params": {"max_new_tokens": 4, "ignore_eos": True}}),
        ("tgi", "/generate_stream", {"inputs": "hello", "parameters": {"max_new_tokens": 4}}),
        ("llama.cpp", "/completion", {"prompt": "hello", "n_predict": 4, "ignore_eos": True}),
        ("trtllm", "/v1/completions", {"prompt": "hello", "max_tokens": 4, "ignore_eos": True}),
        ("mii", "/v1/completions", {"prompt": "hello", "max_tokens": 4, "ignore_eos": True}),
    ],
)
def test_tokens_are_counted_in_each_dialect(log: RequestLog, dialect: str, path: str, body: dict[str, object]) -> None:
    with client_of(observed_server(log, dialect=dialect)) as client:
        client.post(path, json={**body, "stream": True}).raise_for_status()
    (request,) = ended(log)
    assert (request.output_tokens, request.chunk_tokens.tolist(), request.status) == (4, [1] * 4, RequestStatus.OK)
