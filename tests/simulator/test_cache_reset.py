"""Resets of the prefix cache: the endpoints of the simulated engines, used by the adapters of those engines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig
from servetop.engines.attach import attach_engine
from servetop.engines.handle import EngineHandle
from servetop.engines.replicas import attach_replicas
from servetop.simulator.scheduling.build import sim_spec
from servetop.simulator.serve import SimulatorServer

PROMPT = list(range(100, 164))
FOUR_BLOCKS = 48
"""Tokens found in a prompt of 64 whose last token is always computed, in blocks of 16."""


def cached_server(dialect: str) -> SimulatorServer:
    profile = "sglang-current" if dialect == "sglang" else "vllm-current"
    keys = {"kv_blocks": 100, "block_size": 16, "time_scale": 0.05}
    spec = sim_spec("llama-2-7b", gpu="a100-40", engine=profile, settings=keys)
    return SimulatorServer(spec, served_name="tiny", dialect=dialect)


async def complete(handle: EngineHandle, tokens: int = 1) -> str:
    body = {"model": "tiny", "prompt": PROMPT, "max_tokens": tokens, "ignore_eos": True}
    return await handle.post("/v1/completions", body, timeout=10.0)


async def found(handle: EngineHandle, server: SimulatorServer) -> float:
    """Tokens that a request for the prompt finds in the cache."""
    assert server.scheduler.prefix is not None
    before = server.scheduler.prefix.hit_tokens
    assert await complete(handle) == ""
    return server.scheduler.prefix.hit_tokens - before


@pytest.mark.parametrize(("dialect", "name"), [("vllm", "sim"), ("sglang", "sglang")])
async def test_a_reset_empties_the_cache_unless_blocks_are_in_use(dialect: str, name: str) -> None:
    server = cached_server(dialect)
    url = await server.start("127.0.0.1", 0)
    handle = await attach_engine(EngineConfig(name=name, model="tiny", url=url), MonotonicClock())
    await complete(handle)
    assert await found(handle, server) == FOUR_BLOCKS
    running = asyncio.create_task(complete(handle, tokens=900))
    while not server.scheduler.blocks.used:
        await asyncio.sleep(0.005)
    assert "POST /" in await handle.reset_prefix_cache(patience=0.0)
    running.cancel()
    assert await handle.reset_prefix_cache() == ""  # repeated until the blocks are free
    assert await found(handle, server) == 0
    await handle.stop()
    server.close()


async def test_every_replica_is_reset_and_prefilled_and_one_without_the_endpoint_is_named() -> None:
    servers = [cached_server("vllm"), cached_server("vllm")]
    urls = [await server.start("127.0.0.1", 0) for server in servers]
    config = EngineConfig(name="sim", model="tiny", url=urls[0], more_urls=(urls[1],))
    group = await attach_replicas(config, MonotonicClock(), on_change=lambda _, __: None)
    body: dict[str, Any] = {"model": "tiny", "prompt": PROMPT, "max_tokens": 1}
    await group.post("/v1/completions", body, timeout=10.0)
    assert await group.post("/v1/completions", body, timeout=10.0) == ""
    assert [server.scheduler.prefix and server.scheduler.prefix.hit_tokens for server in servers] == [FOUR_BLOCKS] * 2
    assert await group.reset_prefix_cache() == ""
    await group.post("/v1/completions", body, timeout=10.0)
    assert [server.scheduler.prefix and server.scheduler.prefix.hit_tokens for server in servers] == [FOUR_BLOCKS] * 2
    assert "HTTP 404" in await group.post("/none", {}, timeout=10.0)
    await group.stop()
    for server in servers:
        server.close()


async def test_a_server_without_the_endpoint_is_not_asked_again_and_the_reason_says_how_to_get_it() -> None:
    server = cached_server("tgi")
    url = await server.start("127.0.0.1", 0)
    clock = MonotonicClock()
    handle = await attach_engine(EngineConfig(name="tgi", url=url, model=""), clock)
    assert "has no endpoint" in await handle.reset_prefix_cache()
    handle.engine = type("Vllm", (type(handle.engine),), {"title": "vLLM", "cache_reset": vllm_reset()})()
    started = clock.now()
    assert "VLLM_SERVER_DEV_MODE=1" in await handle.reset_prefix_cache(patience=60.0)
    assert clock.now() - started < 30.0
    await handle.stop()
    server.close()


def vllm_reset() -> object:
    from servetop.engines.adapters.vllm import VllmEngine

    return VllmEngine.cache_reset
