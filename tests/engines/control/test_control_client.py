"""Limits on what a server may send to the control plane, and checks of its numbers."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.engines.attach import attach_engine
from servetop.engines.control.control_client import HttpResult, ServerClient
from servetop.engines.control.http_body import MAX_BODY_BYTES
from servetop.engines.metrics.llama_cpp_metrics import LlamaCppPages
from servetop.engines.metrics.prometheus_server import newest_samples, server_time
from servetop.engines.metrics.tensorrt_llm_metrics import ITERATIONS, TensorRtLlmPages
from servetop.engines.metrics.vllm_metrics import VLLM_METRICS
from tests.engines.conftest import PageServer

ABSURD = ("NaN", "+Inf", "-Inf", "1e308", "-1e308", "1e400", "9" * 400, "1e18000")
HUGE = 10**400


async def ask(server: PageServer, body: bytes, encoding: str = "") -> HttpResult:
    server.pages["/metrics"] = (200, body)
    server.headers["/metrics"] = f"Content-Encoding: {encoding}\r\n" if encoding else ""
    client = ServerClient(server.url)
    try:
        return await client.request("/metrics")
    finally:
        await client.close()


async def test_a_page_of_50_mb_is_refused_with_the_limit_in_the_reason(server: PageServer) -> None:
    answer = await ask(server, b"vllm:num_requests_running 1\n" * (50_000_000 // 28))
    assert (answer.error, answer.body) == ("its response is longer than 8 MiB: discarded", b"")


async def test_a_page_of_8_mib_of_line_ends_is_refused(server: PageServer) -> None:
    assert "more than 200,000 lines" in (await ask(server, b"\n" * MAX_BODY_BYTES)).error


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_compressed_page_is_decoded_although_not_requested(server: PageServer, encoding: str) -> None:
    body = b"vllm:num_requests_running 1\n" * 1000
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
    assert (await ask(server, packed, encoding)).body == body


async def test_a_packed_answer_is_unpacked_up_to_the_limit_and_no_further(server: PageServer) -> None:
    bomb = gzip.compress(bytes(1 << 26))
    assert len(bomb) < 1 << 20
    assert (await ask(server, bomb, "gzip")).error == "its response is longer than 8 MiB: discarded"


@pytest.mark.parametrize(
    ("body", "encoding", "trouble"),
    [
        (b"no gzip", "gzip", "it sends malformed gzip"),
        (b"x", "zstd", "it responds with content encoding zstd, which was not requested"),
    ],
)
async def test_what_cannot_be_unpacked_is_a_reason(
    server: PageServer, body: bytes, encoding: str, trouble: str
) -> None:
    assert (await ask(server, body, encoding)).error == trouble


async def test_json_nested_too_deeply_is_invalid(server: PageServer) -> None:
    assert (await ask(server, b"[" * 1_000_000)).json() is None


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (b'[{"id": "\\ud83dx"}]', "?x"),
        (b'[{"id": "\\uDFFFx"}]', "?x"),
        (b'[{"id": "\\ud83d\\ude42"}]', "\N{SLIGHTLY SMILING FACE}"),
        (b'[{"id": "\\\\ud83d"}]', "\\ud83d"),
        (b'[{"id": "\xed\xa0\xbdx"}]', "\N{REPLACEMENT CHARACTER}" * 3 + "x"),
    ],
)
async def test_every_text_of_a_json_body_can_be_encoded(server: PageServer, body: bytes, model: str) -> None:
    assert (await ask(server, body)).json() == [{"id": model}]


async def test_a_metrics_page_that_is_too_long_is_a_trouble_of_the_metrics_and_not_of_the_engine(
    vllm_server: PageServer,
) -> None:
    handle = await attach_engine(EngineConfig(name="auto", url=vllm_server.url, model=""), MonotonicClock())
    vllm_server.pages["/metrics"] = (200, b"#" * (MAX_BODY_BYTES + 1))
    assert await handle.sample() is None
    assert handle.metrics_trouble is not None
    assert "longer than 8 MiB" in handle.metrics_trouble
    assert not handle.died.is_set()
    await handle.stop()


@pytest.mark.parametrize("number", ABSURD)
def test_a_sample_that_cannot_be_is_not_known(number: str) -> None:
    page = f"vllm:num_requests_running {number}\nvllm:num_requests_waiting 3\n".encode()
    sample = VLLM_METRICS.sample({"/metrics": page}, start=0.0, end=1.0)
    assert sample is not None
    assert (sample.running, sample.waiting) == (None, 3.0)


@pytest.mark.parametrize("number", [HUGE, 1e308, float("nan"), float("inf"), -1, True, "x", None, []])
def test_absurd_numbers_of_json_pages_are_not_known(number: object) -> None:
    slots = json.dumps([{"is_processing": True, "n_prompt_tokens": number, "n_ctx": number}]).encode()
    page = {"/metrics": b"llamacpp:requests_processing 1\n", "/slots": slots}
    llama = LlamaCppPages(shared=True).sample(page, start=0.0, end=1.0)
    assert llama is not None
    assert (llama.kv_blocks_used, llama.kv_blocks_total) == (0.0, None)
    iterations = json.dumps([{"numActiveRequests": number, "kvCacheStats": {"usedNumBlocks": number}}]).encode()
    trt = TensorRtLlmPages().sample({ITERATIONS: iterations}, start=0.0, end=1.0)
    assert trt is not None
    assert (trt.running, trt.kv_blocks_used) == (None, None)


@pytest.mark.parametrize("at", [HUGE, float("nan"), float("inf"), "1e999", "x"])
def test_a_prometheus_servers_absurd_times_are_none(at: object) -> None:
    series = {"metric": {"__name__": "vllm:num_requests_running"}, "values": [[at, "1"]]}
    assert newest_samples({"status": "success", "data": {"result": [series]}}) is None
    assert server_time({"status": "success", "data": {"result": [at, at]}}) is None


async def test_absurd_sizes_in_a_model_list_are_not_known(vllm_server: PageServer) -> None:
    card = {"id": "m", "max_model_len": HUGE}
    vllm_server.pages["/v1/models"] = (200, json.dumps({"data": [card]}).encode())
    handle = await attach_engine(EngineConfig(name="auto", url=vllm_server.url, model=""), MonotonicClock())
    assert handle.facts.max_model_len is None
    await handle.stop()
