"""Log lines of engines without their prefixes, and their statistics in few words."""

from __future__ import annotations

import pytest

from servetop.tui.state.log_text import shortened_stats, split_prefix


@pytest.mark.parametrize(
    ("line", "message", "source"),
    [
        ("INFO 11-22 03:24:12 [core.py:83] Initializing a V1 engine", "Initializing a V1 engine", "core.py:83"),
        ("INFO 11-22 03:24:12 [servetop.sim] ready", "ready", "servetop.sim"),
        ("WARNING 11-22 03:24:12.123 [v1/core/sched.py:9] low", "low", "v1/core/sched.py:9"),
        ("(EngineCore_DP0 pid=123) INFO 11-22 03:24:12 [core.py:83] GPU KV cache size: 46,080 tokens",
         "GPU KV cache size: 46,080 tokens", "core.py:83"),
        ("(EngineCore_DP0 pid=1) (Worker_TP0 pid=2) ERROR 11-22 03:24:12 [multi.py:1] dead", "dead", "multi.py:1"),
        ("(APIServer pid=7) INFO:     Started server process [7]", "Started server process [7]", ""),
        ("(EngineCore pid=7) Loading safetensors checkpoint shards: 50%", "Loading safetensors checkpoint shards: 50%",
         ""),
        ("INFO:     127.0.0.1:5 - \"POST /v1/completions HTTP/1.1\" 200 OK",
         "127.0.0.1:5 - \"POST /v1/completions HTTP/1.1\" 200 OK", ""),
        ("[2025-11-22 03:24:12 TP0] Decode batch. #running-req: 3", "Decode batch. #running-req: 3", ""),
        ("[2025-11-22 03:24:12] INFO:     Uvicorn running on http://127.0.0.1:1",
         "Uvicorn running on http://127.0.0.1:1", ""),
        ("[11/22/2025-03:24:12] [TRT-LLM] [I] engine loaded", "engine loaded", ""),
        ("2025-11-22T03:24:12.123456Z  INFO text_generation_router: router/src/main.rs:123: Connected", "Connected",
         "text_generation_router: router/src/main.rs:123"),
        ("2025-11-22 03:24:12,123 INFO serve 42 replica.py:12 -- started", "serve 42 replica.py:12 -- started", ""),
        ("2025-11-22 03:24:12,123 - vllm.engine - INFO - started", "started", "vllm.engine"),
        ("I1122 03:24:12.123456 123 server.cc:600] Started HTTPService", "Started HTTPService", "server.cc:600"),
        ("0.00.058.123 I srv  update_slots: all slots are idle", "srv  update_slots: all slots are idle", ""),
        ("main: server is listening on http://127.0.0.1:1", "main: server is listening on http://127.0.0.1:1", ""),
        ("INFORMATION is not a level", "INFORMATION is not a level", ""),
        ("INFO 11-22 03:24:12 [core.py:83]", "INFO 11-22 03:24:12 [core.py:83]", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_a_line_is_split_into_message_and_source(line: str, message: str, source: str) -> None:
    assert split_prefix(line) == (message, source)


def test_the_statistics_of_vllm_and_sglang_are_shortened_with_the_load_first() -> None:
    vllm = (
        "Engine 000: Avg prompt throughput: 2435.2 tokens/s, Avg generation throughput: 2136.0 tokens/s, Running: 34"
        " reqs, Waiting: 7 reqs, GPU KV cache usage: 99.4%, Prefix cache hit rate: 0.0%"
    )
    assert shortened_stats(vllm) == "running 34, waiting 7, KV 99.4 %, out 2,136 tok/s, in 2,435 tok/s"
    assert shortened_stats(vllm.replace("GPU KV", "CPU KV")) == shortened_stats(vllm)
    sglang = (
        "Decode batch. #running-req: 12, #token: 4096, token usage: 0.31, cuda graph: True, "
        "gen throughput (token/s): 812.44, #queue-req: 3"
    )
    assert shortened_stats(sglang) == "running 12, waiting 3, KV 31 %, out 812 tok/s"
    assert shortened_stats("Avg prompt throughput: none") == "Avg prompt throughput: none"


def test_a_hostile_line_is_split_in_linear_time() -> None:
    line = "(" + "a pid=1) (" * 20_000
    assert split_prefix(line).source == ""
