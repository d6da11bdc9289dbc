"""A problem of an attached server is reported in one line that says what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.core.errors import EngineError, UsageError
from servetop.engines.attach import attach_engine
from servetop.engines.handle import EngineHandle

if TYPE_CHECKING:
    from tests.engines.conftest import PageServer

TGI_INFO = {"model_id": "org/m", "max_best_of": 2, "router": "text-generation-router", "version": "3.3.6-dev0"}
SGLANG_INFO = {"mem_fraction_static": 0.88, "max_running_requests": 64, "version": "0.5.4"}


def answer(content: object) -> tuple[int, bytes]:
    return 200, json.dumps(content).encode()


def models(owner: str) -> tuple[int, bytes]:
    return answer({"object": "list", "data": [{"id": "org/m", "owned_by": owner}]})


async def attached(server: PageServer, name: str = "auto", max_num_seqs: int | None = None) -> EngineHandle:
    config = EngineConfig(name=name, url=server.url, model="", max_num_seqs=max_num_seqs)
    return await attach_engine(config, MonotonicClock())


@pytest.fixture
def sglang(server: PageServer) -> PageServer:
    """SGLang as it is started without --enable-metrics."""
    server.pages = {"/server_info": answer(SGLANG_INFO), "/v1/models": models("sglang"), "/health": (200, b"")}
    return server


async def test_a_wrong_engine_is_reported_with_the_detected_engine_and_version(server: PageServer) -> None:
    server.pages = {"/info": answer(TGI_INFO), "/v1/models": models("org/m")}
    with pytest.raises(
        EngineError, match=r"responds like TGI 3\.3\.6-dev0, not like vLLM: give --engine tgi, or leave"
    ):
        await attached(server, "vllm")


@pytest.mark.parametrize(
    ("version", "pages", "words"),
    [
        ("1.4.5", {"/info": answer({**TGI_INFO, "version": "1.4.5"})}, "TGI 1.4.5, older than the supported 2.0"),
        (
            "0.3.6",
            {"/server_info": answer({**SGLANG_INFO, "version": "0.3.6"})},
            "SGLang 0.3.6, older than the supported",
        ),
        ("0.2.1", {"/version": answer({"version": "0.2.1"}), "/v1/models": models("vllm")}, "vLLM 0.2.1, older than"),
    ],
)
async def test_too_old_a_version_is_reported_with_the_oldest_supported_one(
    server: PageServer, version: str, pages: dict[str, tuple[int, bytes]], words: str
) -> None:
    server.pages = {"/v1/models": models("org/m"), **pages}
    with pytest.raises(EngineError) as caught:
        await attached(server)
    assert words in str(caught.value)
    assert "or give --engine openai to load it without its metrics" in str(caught.value)
    handle = await attached(server, "openai")
    assert handle.facts.version == (version if "/version" in pages else None)
    await handle.stop()


async def test_metrics_that_are_off_name_the_option_that_turns_them_on(sglang: PageServer) -> None:
    handle = await attached(sglang)
    assert handle.facts.name == "sglang"
    assert await handle.sample() is None
    assert handle.metrics_trouble == (
        f"no metrics from {sglang.url}/metrics (HTTP 404): metrics are off: start SGLang with --enable-metrics"
    )
    await handle.stop()


@pytest.mark.parametrize("body", [b"[true]", b'{"updated":true,"server_args":{"trust_remote_code":false}}'])
async def test_an_sglang_takes_a_smaller_batch_size_while_it_runs(sglang: PageServer, body: bytes) -> None:
    sglang.pages["/set_internal_state"] = (200, body)
    handle = await attached(sglang, max_num_seqs=16)
    assert handle.facts.max_num_seqs == 16
    assert handle.facts.changes_batch_size_live
    await handle.stop()


@pytest.mark.parametrize("body", [b"[false]", b'{"updated":false,"server_args":{"trust_remote_code":true}}'])
async def test_a_batch_size_that_sglang_refuses_is_reported_with_the_reason(sglang: PageServer, body: bytes) -> None:
    sglang.pages["/set_internal_state"] = (200, body)
    with pytest.raises(EngineError, match=r"refused batch size 128 \(running requests \(--max-running-requests\)"):
        await attached(sglang, max_num_seqs=128)


async def test_a_tgi_keeps_its_batch_size(server: PageServer) -> None:
    server.pages = {"/info": answer(TGI_INFO), "/v1/models": models("org/m")}
    with pytest.raises(UsageError, match=r"TGI at .* cannot change its batch size while it runs"):
        await attached(server, max_num_seqs=16)
