"""The simulated dialect of Triton, compared with captured responses; its metrics have a separate port."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from tests.simulator.dialects.captured import body, captured_events, keys_of
from tests.simulator.dialects.served import events, names, samples, server_of
from tests.simulator.server_process import client_of, serve


class Pair(NamedTuple):
    client: httpx.Client
    metrics_url: str

    def page(self) -> str:
        return httpx.get(self.metrics_url).raise_for_status().text


@pytest.fixture
def pair() -> Iterator[Pair]:
    server = server_of("triton")
    with client_of(server) as client:
        yield Pair(client, server.metrics_url)


def generate(pair: Pair, path: str = "generate", *, model: str = "ensemble", **more: Any) -> httpx.Response:
    request = {"text_input": "four words of text", "max_tokens": 4, "end_id": -1, **more}
    return pair.client.post(f"/v2/models/{model}/{path}", json=request)


def test_a_stream_has_exactly_the_captured_keys(pair: Pair) -> None:
    response = generate(pair, "generate_stream", stream=True)
    real = captured_events("triton/generate_stream.txt")
    assert [list(event) for event in events(response)] == [list(event) for event in real]


def test_token_counts_are_sent_on_request(pair: Pair) -> None:
    request: dict[str, Any] = {"return_num_input_tokens": True, "return_num_output_tokens": True}
    whole = generate(pair, **request).json()
    assert (whole["num_input_tokens"], whole["num_output_tokens"]) == (5, 4)
    assert len(whole["text_output"].split()) == 4
    received = events(generate(pair, "generate_stream", stream=True, **request))
    assert sum(event["num_output_tokens"] for event in received) == 4
    assert list(generate(pair).json()) == list(json.loads(body("triton/generate.txt")))


def test_the_token_limit_has_another_name_in_the_other_model(pair: Pair) -> None:
    rejected = generate(pair, model="tensorrt_llm")
    assert rejected.status_code == 400
    assert "['sampling_param_max_tokens']" in rejected.json()["error"]
    answer = generate(pair, model="tensorrt_llm", sampling_param_max_tokens=3)
    assert len(answer.json()["text_output"].split()) == 3


def test_the_metrics_port_has_the_captured_families_and_counts_tokens(pair: Pair) -> None:
    for _ in range(3):
        generate(pair)
    real, page = names(body("triton/metrics_loaded.txt")), pair.page()
    own = {"nv_trt_llm_general_metrics", "nv_llm_input_token_len", "nv_llm_output_token_len"}
    assert [pair for pair in names(page).items() if pair[0] not in own] == list(real.items())
    received = samples(page)
    known = set(samples(body("triton/metrics_loaded.txt")))
    assert {name for name in received if not name.startswith(("nv_llm", "nv_trt_llm_general"))} == known
    assert received["nv_inference_request_success ensemble 1"] == 3
    assert received["nv_llm_output_token_len_sum tensorrt_llm 1"] == 12
    assert received["nv_llm_input_token_len_sum tensorrt_llm 1"] == 15
    assert received["nv_trt_llm_kv_cache_block_metrics max tensorrt_llm 1"] == 100
    assert received["nv_trt_llm_request_metrics tensorrt_llm max 1"] == 8
    assert pair.client.get("/metrics").status_code == 404
    assert httpx.get(pair.metrics_url + "/nowhere").status_code == 404


def test_the_gauges_describe_running_requests() -> None:
    server = server_of("triton", time_scale=1.0)
    with client_of(server) as client:
        request = {"text_input": "a" * 256, "max_tokens": 1000, "end_id": -1, "stream": True}
        with client.stream("POST", "/v2/models/ensemble/generate_stream", json=request) as reply:
            chunks = reply.iter_raw()
            next(chunks)
            received = samples(httpx.get(server.metrics_url).text)
    assert received["nv_trt_llm_request_metrics tensorrt_llm scheduled 1"] == 1
    assert received["nv_trt_llm_kv_cache_block_metrics used tensorrt_llm 1"] == 17  # 1063 tokens in blocks of 64


def test_the_other_routes_have_the_captured_formats(pair: Pair) -> None:
    get = pair.client.get
    assert (get("/v2/health/ready").status_code, get("/v2/health/live").content) == (200, b"")
    assert get("/v2").json() == json.loads(body("triton/v2_server_metadata.json"))
    assert keys_of(get("/v2/models/ensemble").json()) == keys_of(json.loads(body("triton/model_metadata.json")))
    assert get("/v2/models/ensemble/config").json()["max_batch_size"] == 8
    idle = get("/v2/models/ensemble/stats").json()
    assert idle == json.loads(body("triton/model_stats_idle.json"))
    generate(pair)
    after = get("/v2/models/ensemble/stats").json()
    assert keys_of(after) == keys_of(json.loads(body("triton/model_stats_after.json")))
    index = pair.client.post("/v2/repository/index").json()
    assert index[0] == json.loads(body("triton/repository_index.json"))[0]


def test_errors_equal_the_captured_ones(pair: Pair) -> None:
    unknown = pair.client.post("/v2/models/nope/generate", json={})
    assert (unknown.status_code, unknown.json()) == (404, json.loads(body("triton/err_nomodel.txt")))
    missing = pair.client.post("/v2/models/ensemble/generate", json={"text_input": "x"})
    assert missing.status_code == 400
    assert missing.json()["error"].partition("Got")[2] == body("triton/err_missing_input.txt").partition("Got")[2][:-2]
    decoupled = generate(pair, stream=True)
    assert (decoupled.status_code, decoupled.json()) == (200, json.loads(body("triton/generate_err_decoupled.txt")))


def test_a_metrics_port_in_use_is_reported_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        options = ["--port", "0", "--metrics-port", port, "--model", "opt-125m", "--dialect", "triton"]
        assert serve(*options) == 1
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("servetop:")]
    assert f"metrics port {port} on 127.0.0.1 is in use" in line
    assert "--metrics-port" in line


def test_statistics_are_available_for_all_models_one_model_and_one_version(pair: Pair) -> None:
    stats = [pair.client.get(f"/v2/models/{path}stats").json() for path in ("", "ensemble/", "ensemble/versions/1/")]
    assert [[each["name"] for each in one["model_stats"]] for one in stats] == [
        ["ensemble", "tensorrt_llm"], ["ensemble"], ["ensemble"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/v2/logging", {"log_verbose_level": 1}),
        ("/v2/trace/setting", {"trace_level": ["TIMESTAMPS"]}),
        ("/v2/models/ensemble/trace/setting", {"trace_rate": "5"}),
    ],
)
def test_settings_can_be_read_and_changed(pair: Pair, path: str, change: dict[str, Any]) -> None:
    before = pair.client.get(path).json()
    assert set(change) < set(before)
    assert pair.client.post(path, json=change).json() == {**before, **change} == pair.client.get(path).json()
    rejected = pair.client.post(path, json={"nonsense": 1})
    assert (rejected.status_code, rejected.json()) == (400, {"error": "unknown setting: 'nonsense'"})


def test_infer_is_rejected_as_by_a_decoupled_model(pair: Pair) -> None:
    rejected = pair.client.post("/v2/models/ensemble/infer", json={"inputs": []})
    expected = "HTTP end point doesn't support models with decoupled transaction policy"
    assert (rejected.status_code, rejected.json()) == (400, {"error": expected})
