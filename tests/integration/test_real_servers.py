"""The servers that the adapters support respond as captured in tests/engines/data."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness import RAN, Servetop, wait_for
from tests.integration.harness import counters, only
from tests.integration.real_engines import RealEngine, end, session

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

CAPTURES = Path(__file__).parents[1] / "engines" / "data"


def captured(engine: str, name: str) -> str:
    path = CAPTURES / engine / name
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def fields(value: Any, path: str = "") -> set[str]:
    """The path of each leaf: `choices[].text`."""
    if isinstance(value, dict):
        return {found for key, item in value.items() for found in fields(item, f"{path}.{key}")}
    if isinstance(value, list) and value:
        return {found for item in value for found in fields(item, f"{path}[]")}
    return {path.removeprefix(".")}


def events(stream: str) -> list[str]:
    """What stands behind each `data:`."""
    return [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]


def fields_of(stream: str) -> set[str]:
    return {path for event in events(stream) if event != "[DONE]" for path in fields(json.loads(event))}


def metric_names(page: str) -> set[str]:
    return set(re.findall(r"^([a-zA-Z_:][\w:]*)[ {]", page, re.MULTILINE))


def streamed(server: RealEngine, path: str, body: dict[str, Any]) -> str:
    answer = httpx.post(f"{server.url}{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return answer.text


LOAD = ("--max-concurrency", "6", "--num-prompts", "24", "--input-len", "12", "--output-len", "60")
STREAM = {"prompt": "hello", "max_tokens": 5, "stream": True}
SAME_EVERY_TIME = {"temperature": 0, "seed": 1}
MAY_BE_ABSENT = {"choices[].delta.role", "choices[].delta.content"}
"""llama-server leaves out what has no text: a role comes with the first token only if that has some."""
USAGE = {"stream_options": {"include_usage": True}}


@only("llama.cpp")
@pytest.mark.parametrize(
    ("path", "body", "capture", "ends_with_done"),
    [
        ("/v1/completions", STREAM | USAGE | {"timings_per_token": True}, "v1_completions_stream.txt", True),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5, "stream": True} | USAGE,
            "chat_stream.txt",
            True,
        ),
        ("/completion", {"prompt": "hello", "n_predict": 5, "stream": True}, "completion_stream.txt", False),
    ],
)
def test_llama_server_streams_the_captured_fields(
    server: RealEngine, path: str, body: dict[str, Any], capture: str, ends_with_done: bool
) -> None:
    stream = streamed(server, path, body | {"ignore_eos": True} | SAME_EVERY_TIME)
    assert fields_of(stream) | MAY_BE_ABSENT == fields_of(captured("llama.cpp", capture)) | MAY_BE_ABSENT
    assert (events(stream)[-1] == "[DONE]") is ends_with_done


@only("llama.cpp")
def test_llama_servers_pages_have_the_captured_names(server: RealEngine) -> None:
    streamed(server, "/completion", {"prompt": "hello", "n_predict": 5, "stream": True})
    page = httpx.get(f"{server.url}/metrics").text
    assert metric_names(page) == metric_names(captured("llama.cpp", "metrics_loaded.txt").split("\n\n")[-1])
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
    assert [slot["n_ctx"] for slot in httpx.get(f"{server.url}/slots").json()] == [1024] * 4


@only("llama.cpp")
def test_an_attached_runs_numbers_agree_with_llama_servers_own(server: RealEngine, servetop: Servetop) -> None:
    before = counters(server.url)
    done = servetop("--url", server.url, *LOAD, "--json")
    after = counters(server.url)
    assert done.code in RAN, done.err
    summary = done.summary
    assert (summary["completed"], summary["failed"]) == (24, 0)
    counted = {name: after[name] - before[name] for name in after}
    assert summary["total_output_tokens"] == counted["llamacpp:tokens_predicted_total"] == 24 * 60
    assert summary["total_input_tokens"] == (
        counted["llamacpp:prompt_tokens_total"] + counted["llamacpp:prompt_tokens_cached_total"]
    )


@only("llama.cpp")
def test_llama_server_refuses_a_prompt_that_is_longer_than_a_slot(server: RealEngine) -> None:
    answer = httpx.post(f"{server.url}/v1/completions", json=STREAM | {"prompt": "hello " * 3000})
    assert answer.status_code == 400
    error = json.loads(captured("llama.cpp", "err_ctx_exceeded.txt").split("\n\n")[-1])
    assert fields(answer.json()) == fields(error)
    assert answer.json()["error"]["type"] == "exceed_context_size_error"


@only("triton")
def test_tritonserver_streams_the_captured_fields_and_no_done(server: RealEngine) -> None:
    body = {"text_input": "one two three", "max_tokens": 5, "stream": True}
    stream = streamed(server, "/v2/models/ensemble/generate_stream", body)
    assert fields_of(stream) == fields_of(captured("triton", "generate_stream.txt"))
    assert [json.loads(event)["text_output"] for event in events(stream)] == [f" tok{i}" for i in range(1, 6)]


@only("triton")
def test_tritonservers_pages_have_the_captured_names(server: RealEngine) -> None:
    assert server.metrics is not None
    page = httpx.get(server.metrics).text
    assert metric_names(page) == metric_names(captured("triton", "metrics_loaded.txt"))
    assert 'request_type="max",version="1"} 8' in page
    assert httpx.get(f"{server.url}/v2").json()["version"] == "2.51.0"


@only("triton")
def test_tritonserver_answers_200_with_an_error_where_a_stream_was_due(server: RealEngine) -> None:
    body = {"text_input": "one", "max_tokens": 5, "stream": True}
    answer = httpx.post(f"{server.url}/v2/models/ensemble/generate", json=body)
    assert answer.status_code == 200
    assert "exactly 1 response" in answer.json()["error"]
    assert httpx.post(f"{server.url}/v2/models/ensemble/generate_stream", json={"text_input": "one"}).status_code == 400
    assert httpx.post(f"{server.url}/v2/models/nope/generate_stream", json=body).status_code == 404


@only("transformers")
def test_transformers_serve_streams_the_captured_fields_and_no_done(server: RealEngine) -> None:
    stream = streamed(server, "/v1/completions", STREAM | {"model": server.model})
    assert fields_of(stream) == fields_of(captured("transformers", "cb_completions_stream.txt"))
    assert json.loads(events(stream)[-1])["choices"][0]["finish_reason"] in ("length", "stop")


@only("transformers")
def test_transformers_serve_refuses_unknown_fields_and_has_no_metrics(server: RealEngine) -> None:
    answer = httpx.post(f"{server.url}/v1/completions", json=STREAM | {"model": server.model, "ignore_eos": True})
    assert (answer.status_code, answer.json()) == (
        422,
        json.loads(captured("transformers", "cb_err_unknown_param.txt").split("\n\n")[-1]),
    )
    assert httpx.get(f"{server.url}/metrics").status_code == 404


@only("ray-serve-llm")
def test_ray_serve_llm_streams_vllms_fields(server: RealEngine) -> None:
    stream = streamed(server, "/v1/completions", STREAM | {"model": "tiny", "ignore_eos": True})
    assert fields_of(stream) == fields_of(captured("ray-serve-llm", "completions_stream.txt"))
    assert events(stream)[-1] == "[DONE]"
    answer = httpx.post(f"{server.url}/v1/completions", json=STREAM | {"model": "nope"})
    assert answer.status_code == 404
    assert "nope" in answer.json()["detail"]


TOLD_ONCE = {"ray_vllm_cache_config_info", "ray_vllm_engine_sleep_state"}
"""Gauges that vLLM sets at its start: Ray reports them for one of its report intervals, and never again."""


@only("ray-serve-llm")
def test_rays_page_has_vllms_metrics_under_the_captured_names(server: RealEngine) -> None:
    """They come seconds late; a counter that never counted is not on the page (preemptions here)."""
    page = captured("ray-serve-llm", "metrics_loaded.txt.gz")
    wanted = {name for name in metric_names(page) if name.startswith("ray_vllm_") and "preemptions" not in name}
    wanted -= TOLD_ONCE
    assert {"ray_vllm_num_requests_running", "ray_vllm_generation_tokens_total"} <= wanted
    streamed(server, "/v1/completions", STREAM | {"model": "tiny", "ignore_eos": True})

    def missing() -> set[str]:
        return wanted - metric_names(httpx.get(server.metrics or "", timeout=10).text)

    wait_for(lambda: not missing(), seconds=60, what=f"a page with all of {wanted}")


@only("ray-serve-llm")
def test_an_attached_runs_tokens_are_those_that_ray_counts_seconds_later(
    server: RealEngine, servetop: Servetop
) -> None:
    name = "ray_vllm_generation_tokens_total"
    page = (server.metrics or "").removesuffix("/metrics")
    before = counters(page).get(name, 0.0)
    done = servetop("--url", server.url, *LOAD, "--json")
    assert done.code in RAN, done.err
    assert done.summary["completed"] == 24
    assert done.summary["total_output_tokens"] == 24 * 60
    wait_for(lambda: counters(page)[name] - before >= 24 * 60, seconds=60, what="Ray's count of all tokens")


def test_a_server_that_leaves_a_process_behind_is_found_out() -> None:
    command = "trap 'exit 0' TERM; set -m; (trap '' TERM; echo ready; sleep 300) & wait"
    process = subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(AssertionError, match="left processes behind"):
            end(process, "bash")
    wait_for(lambda: not session(process.pid), seconds=10, what="the end of what was left")
