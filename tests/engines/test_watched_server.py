"""A watch of a server that servetop knows only partly: what is sampled, and what is said about it."""

from __future__ import annotations

import json

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError
from servetop.engines.attach import attach_engine
from servetop.engines.handle import EngineHandle
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.engines.watching.health_check import HEALTH_SECONDS
from tests.engines.conftest import PageServer

TWO_MODELS = b"""\
vllm:num_requests_running{model_name="m1",engine="0"} 2
vllm:num_requests_running{model_name="m2",engine="0"} 3
vllm:num_requests_waiting{model_name="m1",engine="0"} 0
vllm:num_requests_waiting{model_name="m2",engine="0"} 77
vllm:generation_tokens_total{model_name="m1",engine="0"} 100
vllm:generation_tokens_total{model_name="m2",engine="0"} 500
"""


def models(*names: str) -> tuple[int, bytes]:
    cards = [{"id": name, "object": "model", "owned_by": "vllm"} for name in names]
    return 200, json.dumps({"object": "list", "data": cards}).encode()


async def watched(url: str, **changes: object) -> EngineHandle:
    given = {"name": "auto", "model": "", "url": url} | changes
    return await attach_engine(EngineConfig(**given), MonotonicClock(), watched=True)  # type: ignore[arg-type]


async def test_an_engine_without_metrics_is_sampled_by_its_health(server: PageServer) -> None:
    server.pages = {"/v1/models": models("x", "y"), "/health": (200, b""), "/version": (200, b'{"version": "9.1"}')}
    server.pages["/v1/models"] = (200, b'{"data": [{"id": "x"}, {"id": "y"}]}')
    handle = await watched(server.url)
    try:
        sample = await handle.sample()
        assert sample is not None
        assert (sample.running, handle.metrics_trouble, handle.facts.models) == (None, None, ("x", "y"))
        reading = handle.take_series()
        assert reading is not None
        assert set(reading.values) == {HEALTH_SECONDS}
        assert [each.name for each in exported_metrics(handle.facts)] == ["answer time"]
        before, found, after = handle.remark.partition(" ms), ")
        assert (found, before.rpartition(" in ")[0]) == (
            " ms), ", "OpenAI-compatible server 9.1 answers (/health: HTTP 200"
        )  # fmt: skip
        assert after == (
            "serves x, y, but no metrics are read (/metrics: HTTP 404), so limits are not judged: turn them on, or "
            "give their address with --metrics-url"
        )
        server.pages["/health"] = (503, b"")
        assert await handle.sample() is None
        assert "no answer to a health check (/health: HTTP 503" in (handle.metrics_trouble or "")
        server.pages["/health"] = (200, b"")
        assert await handle.sample() is not None
        assert handle.metrics_trouble is None
    finally:
        await handle.stop()


async def test_a_known_engine_says_how_its_metrics_are_turned_on_and_is_judged_when_they_come(
    vllm_server: PageServer,
) -> None:
    page = vllm_server.pages.pop("/metrics")
    handle = await watched(vllm_server.url)
    try:
        sample = await handle.sample()
        assert sample is not None
        assert sample.running is None
        assert handle.remark.endswith("is it running with --disable-log-stats?")
        assert "/metrics (HTTP 404)" in (handle.metrics_trouble or "")
        vllm_server.pages["/metrics"] = page
        handle.retries = None
        later = await handle.sample()
        assert later is not None
        assert (later.running, handle.metrics_trouble) == (6, None)
        del vllm_server.pages["/metrics"]
        assert await handle.sample() is None, "a page that was read once and is gone is missing"
    finally:
        await handle.stop()


@pytest.mark.parametrize("page", [(404, b""), (200, b"<html>Welcome to nginx!</html>")])
async def test_a_server_that_has_nothing_of_an_engine_is_refused(server: PageServer, page: tuple[int, bytes]) -> None:
    server.pages = dict.fromkeys(("/health", "/metrics", "/v1/models", "/"), page)
    with pytest.raises(EngineError, match="no metrics, no list of models and no health check") as refused:
        await watched(server.url, model="x")
    assert "it is no engine that can be watched: check the address, or give --metrics-url" in str(refused.value)
    server.pages = {"/health": (200, b"ok")}
    handle = await watched(server.url, model="x")
    await handle.stop()


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_metrics_of_an_unknown_engine_are_read_by_their_own_names(server: PageServer, elsewhere: bool) -> None:
    server.pages = {
        "/v1/models": (200, b'{"data": [{"id": "x"}]}'),
        "/metrics": (200, b"# TYPE acme_running gauge\nacme_running 3\n# TYPE acme_done counter\nacme_done_total 8\n"),
    }
    handle = await watched(server.url, metrics_url=f"{server.url}/metrics" if elsewhere else None)
    try:
        assert handle.remark == (
            "metrics of an unknown engine (acme_done, acme_running) are shown by their own names, and limits are not "
            "judged"
        )
        sample = await handle.sample()
        reading = handle.take_series()
        assert sample is not None
        assert reading is not None
        assert (sample.running, dict(reading.values)) == (None, {"acme_running": 3.0, "acme_done_total": 8.0})
        assert handle.metrics_trouble is None
    finally:
        await handle.stop()


async def test_all_models_of_the_page_count_unless_one_is_selected(vllm_server: PageServer) -> None:
    vllm_server.pages |= {"/v1/models": models("m1", "m2"), "/metrics": (200, TWO_MODELS)}
    handle, other = await watched(vllm_server.url), await watched(vllm_server.url, model="m2")
    try:
        both, second = await handle.sample(), await other.sample()
        assert both is not None
        assert second is not None
        assert (both.running, both.waiting, both.generation_tokens_total) == (5, 77, 600)
        assert (second.running, second.waiting, second.generation_tokens_total) == (3, 77, 500)
        assert (handle.facts.model, other.facts.model, other.remark) == ("m1, m2", "m2", "")
        assert handle.remark == (
            "its metrics are those of 2 models, m1, m2: counts are sums, KV usage is a mean; --model selects one"
        )
    finally:
        await handle.stop()
        await other.stop()


async def test_a_batch_limit_that_the_engine_does_not_export_is_taken_as_given_and_never_set(
    vllm_server: PageServer,
) -> None:
    handle = await watched(vllm_server.url, max_num_seqs=16)
    await handle.stop()
    assert handle.facts.max_num_seqs == 16
    assert {head.split(" ")[0] for head in vllm_server.heads} == {"GET"}


async def test_a_page_that_is_too_long_is_asked_for_less_and_less_often(
    vllm_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("servetop.engines.control.http_body.MAX_BODY_BYTES", 10_000)
    monkeypatch.setattr("servetop.engines.control.retry_delay.retry_delay", lambda _: 1e9)
    handle = await watched(vllm_server.url)
    try:
        asked = sum("/metrics " in head for head in vllm_server.heads)
        for _ in range(6):
            sample = await handle.sample()
            assert sample is not None, "its health is read all the same"
        assert "is longer than" in (handle.metrics_trouble or "")
        assert sum("/metrics " in head for head in vllm_server.heads) == asked + 2
    finally:
        await handle.stop()
