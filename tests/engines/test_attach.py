"""A running server is recognised by its responses; every problem is reported in one clear line."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines import handle as handle_module
from servetop.engines.attach import attach_engine
from servetop.engines.control import patient_client
from servetop.engines.control.control_client import is_local
from servetop.engines.control.server_url import ServerUrl
from servetop.engines.handle import EngineHandle
from servetop.engines.metrics.metrics_reader import GAUGES
from tests.harness import SLOW_MACHINE

if TYPE_CHECKING:
    from tests.engines.conftest import PageServer

ONE_MODEL = (200, json.dumps({"object": "list", "data": [{"id": "gpt-x", "owned_by": "acme"}]}).encode())


async def attached(
    url: str, clock: MonotonicClock, *, name: str = "auto", model: str = "", key: str | None = None
) -> EngineHandle:
    return await attach_engine(EngineConfig(name=name, url=url, model=model, api_key_env=key), clock)


async def refused(url: str, clock: MonotonicClock, **named: str | None) -> str:
    with pytest.raises(EngineError) as caught:
        await attached(url, clock, **named)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_vllm_is_recognised_and_known(vllm_server: PageServer, clock: MonotonicClock) -> None:
    handle = await attached(vllm_server.url.removeprefix("http://") + "/v1/", clock)
    facts = handle.facts
    assert (facts.name, facts.version, facts.model, facts.url) == (
        "vllm", "0.32.0", "/models/tiny-llama", vllm_server.url,
    )  # fmt: skip
    assert (facts.kv_blocks_total, facts.max_model_len, facts.max_num_seqs) == (63, 1024, None)
    assert (facts.managed, facts.pid, handle.launched, handle.log_tail()) == (False, None, None, ())
    assert handle.continuous_usage
    sample = await handle.sample()
    assert sample is not None
    assert sample.running == 6
    report = await handle.stop()
    assert (report.port_free, report.trouble) == (None, None)
    assert not handle.died.is_set()


async def test_a_vllm_with_its_metrics_turned_off_is_still_a_vllm(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    vllm_server.pages["/metrics"] = (200, b"python_info 1\n")
    handle = await attached(vllm_server.url, clock)
    assert handle.facts.name == "vllm"
    assert handle.facts.not_exported == GAUGES
    assert await handle.sample() is None
    assert "has no metrics of vLLM (it begins 'python_info 1')" in (handle.metrics_trouble or "")
    await handle.stop()


async def test_anything_that_lists_models_is_openai_compatible_and_has_no_metrics(
    server: PageServer, clock: MonotonicClock
) -> None:
    server.pages = {"/v1/models": ONE_MODEL, "/metrics": (200, b"go_goroutines 8\n")}
    handle = await attached(server.url, clock)
    assert (handle.facts.name, handle.facts.model, handle.facts.version) == ("openai", "gpt-x", None)
    assert handle.facts.not_exported == GAUGES
    assert not handle.continuous_usage
    assert (await handle.sample(), handle.metrics_trouble) == (None, None)
    assert await handle.set_max_num_seqs(8) is False
    await handle.stop()


async def test_a_metrics_url_without_metrics_is_an_error(server: PageServer, clock: MonotonicClock) -> None:
    server.pages = {"/v1/models": ONE_MODEL, "/metrics": (200, b"go_goroutines 8\n")}
    handle = await attach_engine(EngineConfig(name="auto", url=server.url, model="", metrics_url=server.url), clock)
    assert (handle.facts.name, await handle.sample()) == ("openai", None)
    assert "has no metrics of OpenAI-compatible server" in (handle.metrics_trouble or "")
    await handle.stop()


async def test_a_server_named_openai_shows_metrics_that_look_like_vllms(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    handle = await attached(vllm_server.url, clock, name="openai")
    assert handle.facts.name == "openai"
    sample = await handle.sample()
    assert sample is not None
    assert sample.kv_blocks_total == 63
    await handle.stop()


async def test_an_unused_port_is_reported_with_a_next_step(clock: MonotonicClock, refusing_url: str) -> None:
    url = refusing_url
    assert await refused(url, clock) == (
        f"nothing answers at {url} (connection refused): is the server up? try: curl {url}/health"
    )


async def test_an_unknown_host_is_reported(clock: MonotonicClock) -> None:
    assert "(no such host)" in await refused("http://no-such-host.invalid:8000", clock)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_requires_a_key_is_reported_with_the_option(
    server: PageServer, clock: MonotonicClock, status: int
) -> None:
    server.pages = {"/v1/models": (status, b'{"error":"Unauthorized"}'), "/health": (200, b"")}
    assert f"(HTTP {status})" in await refused(server.url, clock)
    assert "--api-key-env" in await refused(server.url, clock)


async def test_the_key_is_sent_with_every_request_and_a_wrong_one_is_reported(
    server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "sk-1")
    server.pages = {"/v1/models": ONE_MODEL}
    handle = await attached(server.url, clock, key="ACME_KEY")
    await handle.stop()
    assert set(server.authorization) == {"Bearer sk-1"}
    server.pages = {"/v1/models": (401, b"")}
    message = await refused(server.url, clock, key="ACME_KEY")
    assert "rejects the key in ACME_KEY" in message
    assert "sk-1" not in message


async def test_an_unset_key_variable_is_an_error_before_any_request(
    server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACME_KEY", raising=False)
    with pytest.raises(UsageError, match=r"ACME_KEY .*holds no API key"):
        await attached(server.url, clock, key="ACME_KEY")
    assert server.authorization == []


@pytest.mark.parametrize(("status", "body"), [(404, b'{"detail":"Not Found"}'), (429, b"slow down"), (500, b"oops")])
async def test_a_server_without_models_is_reported_with_the_reason(
    server: PageServer, clock: MonotonicClock, status: int, body: bytes
) -> None:
    server.pages = {"/v1/models": (status, body)}
    message = await refused(server.url, clock)
    assert f"/v1/models lists no models (HTTP {status}: {body.decode()})" in message
    assert "--model" in message


async def test_without_a_list_of_models_the_given_one_is_used(server: PageServer, clock: MonotonicClock) -> None:
    handle = await attached(server.url, clock, model="my-model")
    assert (handle.facts.name, handle.facts.model) == ("openai", "my-model")
    await handle.stop()


async def test_a_model_that_is_not_served_is_answered_with_those_that_are(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    message = await refused(vllm_server.url, clock, model="llama-2-7b")
    assert message == f"{vllm_server.url} does not serve 'llama-2-7b': it serves /models/tiny-llama"


async def test_an_alias_finds_the_model_that_is_served_under_its_hub_name(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    models = {"data": [{"id": "org/other", "owned_by": "vllm"}, {"id": "meta-llama/Llama-2-7b-hf", "owned_by": "vllm"}]}
    vllm_server.pages["/v1/models"] = (200, json.dumps(models).encode())
    handle = await attached(vllm_server.url, clock, model="llama-2-7b")
    assert handle.facts.model == "meta-llama/Llama-2-7b-hf"
    await handle.stop()


async def test_a_wrong_engine_option_is_reported_with_the_detected_engine(
    server: PageServer, vllm_server: PageServer, clock: MonotonicClock
) -> None:
    assert "responds like vLLM 0.32.0, not like servetop simulator: give --engine vllm" in await refused(
        vllm_server.url, clock, name="sim"
    )
    server.pages = {"/v1/models": ONE_MODEL}
    assert "responds like OpenAI-compatible server, not like vLLM" in await refused(server.url, clock, name="vllm")


async def test_a_batch_size_that_cannot_change_is_refused(vllm_server: PageServer, clock: MonotonicClock) -> None:
    config = EngineConfig(name="auto", url=vllm_server.url, model="", max_num_seqs=64)
    with pytest.raises(UsageError, match=r"vLLM at .* cannot change its batch size.*--max-concurrency"):
        await attach_engine(config, clock)


async def test_a_missing_or_malformed_metrics_page_is_reported_until_it_recovers(
    vllm_server: PageServer, clock: MonotonicClock
) -> None:
    handle = await attached(vllm_server.url, clock)
    good = vllm_server.pages["/metrics"]
    for page, words in (
        ((404, b""), "(HTTP 404)"),
        ((200, b"<html>\x00\xff"), "begins '<html>"),
        ((503, b"loading"), "(HTTP 503)"),
    ):
        vllm_server.pages["/metrics"] = page
        assert await handle.sample() is None
        assert words in (handle.metrics_trouble or "")
    vllm_server.pages["/metrics"] = good
    assert await handle.sample() is not None
    assert handle.metrics_trouble is None
    await handle.stop()


@pytest.mark.parametrize("sampled", [True, False])
async def test_a_stopped_server_is_detected_soon(vllm_server: PageServer, clock: MonotonicClock, sampled: bool) -> None:
    handle = await attached(vllm_server.url, clock)
    assert handle.exit_reason() == ""
    await vllm_server.vanish()
    limit = clock.now() + 2.0 * SLOW_MACHINE
    while not handle.died.is_set() and clock.now() < limit:
        if sampled:
            assert await handle.sample() is None
        await clock.sleep_until(clock.now() + 0.1)
    assert handle.exit_reason() == f"vLLM at {vllm_server.url} stopped responding (connection refused)"
    await handle.stop()


async def test_a_server_that_stays_silent_is_reported_with_the_length_of_its_silence(
    vllm_server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle_module, "SILENT_LIMIT", 1.0)
    handle = await attached(vllm_server.url, clock)
    vllm_server.answering.clear()
    assert await handle.sample() is None
    await asyncio.wait_for(handle.died.wait(), 30.0 * SLOW_MACHINE)
    assert re.fullmatch(r"vLLM at \S+ stopped responding \(no response for [1-9]\d* s\)", handle.exit_reason())
    await handle.stop()


async def test_a_slow_server_is_not_dead(
    vllm_server: PageServer, clock: MonotonicClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patient_client, "BUSY_TIMEOUT", 1000.0)
    handle = await attached(vllm_server.url, clock)
    vllm_server.answering.clear()
    assert await handle.sample() is None
    assert "no response within 1 s" in (handle.metrics_trouble or "")
    patient = asyncio.create_task(handle.sample())
    await asyncio.sleep(1.2)
    assert not patient.done(), "its next page is waited for longer: it would never be heard"
    assert not handle.died.is_set()
    vllm_server.answering.set()
    assert await patient is not None
    await handle.stop()


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("gpu7:8000", "http://gpu7:8000"),
        ("http://gpu7:8000/", "http://gpu7:8000"),
        ("https://api.example.com/openai/v1/", "https://api.example.com/openai"),
        (" http://[::1]:8000/v1 ", "http://[::1]:8000"),
        ("http://gpu7:8000/v1?x=1#y", "http://gpu7:8000?x=1"),
    ],
)
def test_an_address_is_taken_in_every_usual_form(text: str, url: str) -> None:
    assert ServerUrl.parse(text).text == url


@pytest.mark.parametrize("text", ["", "http://", "ftp://gpu7", "gpu 7:8000", "http://gpu7:99999", "http://[::1"])
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="invalid server address"):
        ServerUrl.parse(text)


def test_a_password_in_the_address_is_refused_because_it_would_be_recorded() -> None:
    with pytest.raises(UsageError, match="--api-key-env") as caught:
        ServerUrl.parse("http://me:secret@gpu7:8000")
    assert "secret" not in str(caught.value)


def test_an_engine_is_local_by_its_address() -> None:
    assert is_local("http://127.0.0.1:1")
    assert is_local("http://localhost:1")
    assert is_local("http://[::1]:1")
    assert not is_local("http://gpu7:8000")
