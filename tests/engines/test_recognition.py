"""No engine claims the server of another: each captured server is shown to all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.engines.control.control_client import HttpResult, HttpResults
from servetop.engines.engine_registry import BUILT_IN, load_engine

DATA = Path(__file__).parent / "data"
OWN_405 = {path: HttpResult(405) for path in ("/load_model", "/reset")}


def captured(name: str) -> HttpResult:
    raw = (DATA / name).read_bytes()
    return HttpResult(200, raw.replace(b"\r\n", b"\n").partition(b"\n\n")[2] if raw.startswith(b"HTTP/") else raw)


SERVERS: dict[str, HttpResults] = {
    "llama.cpp": {
        "/health": captured("llama.cpp/health_idle.txt"),
        "/props": captured("llama.cpp/props_idle.txt"),
        "/v1/models": captured("llama.cpp/v1_models_idle.txt"),
        "/metrics": captured("llama.cpp/metrics_idle.txt"),
        "/slots": captured("llama.cpp/slots_idle.txt"),
    },
    "ray-serve-llm": {
        "/-/healthz": captured("ray-serve-llm/healthz.txt"),
        "/-/routes": captured("ray-serve-llm/routes.txt"),
        "/v1/models": captured("ray-serve-llm/v1_models.txt"),
    },
    "transformers": {**OWN_405, "/health": captured("transformers/cb_health.txt"), "/metrics": HttpResult(404)},
    "triton-tensorrt-llm": {
        "/v2": captured("triton/v2_server_metadata.json"),
        "/v2/models/ensemble/config": captured("triton/model_config.json"),
    },
    "vllm": {
        "/health": HttpResult(200),
        "/version": captured("vllm/version.json"),
        "/v1/models": captured("vllm/v1_models.json"),
        "/metrics": captured("vllm/metrics_0.32.0.txt"),
    },
}


@pytest.mark.parametrize("server", SERVERS)
def test_a_captured_server_is_claimed_by_its_own_engine_and_by_the_fallback_only(server: str) -> None:
    claims = {name: load_engine(name).match_score(SERVERS[server]) for name in BUILT_IN}
    claimed = {name: claim for name, claim in claims.items() if claim}
    fallback = {"openai": 1} if b'"data"' in SERVERS[server].get("/v1/models", HttpResult()).body else {}
    assert claimed == {server: 2} | fallback


@pytest.mark.parametrize("name", BUILT_IN)
def test_only_the_fallback_engine_matches_an_unknown_server(name: str) -> None:
    engine = load_engine(name)
    listed = HttpResult(200, b'{"object":"list","data":[{"id":"m","object":"model"}]}')
    requested = [*engine.probe_paths, *(reader.paths if (reader := engine.metrics()) else ())]
    for answer in (
        HttpResult(404, b"Not Found"),
        HttpResult(error="refused"),
        HttpResult(200, b"<html>"),
        HttpResult(200, b"[]"),
    ):
        claim = engine.match_score({**dict.fromkeys(requested, answer), "/v1/models": listed})
        assert claim == (1 if name == "openai" else 0)
