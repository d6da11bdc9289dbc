"""Fixtures of the load generator's tests: scripted servers, and senders that send a load to them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import ConnectionConfig, WorkloadConfig
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.messages import SenderSetup
from servetop.loadgen.sender.sender import Sender
from servetop.loadgen.transport.transport_factory import transport_factory
from servetop.loadgen.worker.sender_pool import SenderPool
from tests.harness import SLOW_MACHINE
from tests.loadgen.load_run import ARGV, LoadRun, PoolRun, setup_for
from tests.loadgen.scripted_server import SSE_HEAD, ScriptedServer

CERTIFICATE = Path(__file__).parent / "data" / "localhost.crt"


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def tls_server() -> AsyncIterator[ScriptedServer]:
    """A server with a self-signed certificate, trusted only if `SSL_CERT_FILE` names it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    server = ScriptedServer()
    await server.start(tls=context)
    yield server
    await server.stop()


@pytest.fixture
async def ipv6_server() -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer()
    try:
        await server.start("::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    yield server
    await server.stop()


@pytest.fixture
def transport() -> str:
    """The transport that `start` uses; a module overrides this to run its tests with each one."""
    return "raw"


@pytest.fixture
async def start(transport: str) -> AsyncIterator[Callable[..., LoadRun]]:
    """Start a sender against a URL: `start(url, input_len=5, ...)`, with fields of WorkloadConfig."""
    runs: list[LoadRun] = []

    def started(
        url: str,
        *,
        api_key: str | None = None,
        continuous_usage: bool = True,
        max_model_len: int | None = None,
        connection: ConnectionConfig | None = None,
        more_urls: tuple[str, ...] = (),
        **workload: Any,
    ) -> LoadRun:
        clock = MonotonicClock(ClockAnchor.take().origin_ns - 120_000_000)  # the first tick ends in 0.13 s
        setup = SenderSetup(
            url=url,
            more_urls=more_urls,
            model="m",
            origin_ns=clock.origin_ns,
            workload=WorkloadConfig(**{"input_len": 5, "output_len": 3, "timeout": 5.0 * SLOW_MACHINE, **workload}),
            continuous_usage=continuous_usage,
            max_model_len=max_model_len,
            api_key=api_key,
            connection=connection or ConnectionConfig(transport=transport),
        )
        dialect = dialect_for(setup.workload.endpoint, model="m", continuous_usage=continuous_usage)
        made: list[LoadRun] = []
        sender = Sender(
            setup,
            dialect,
            clock=clock,
            transport=transport_factory(setup, dialect, clock),
            report=lambda report: made[0].take(report),
        )
        made.append(LoadRun(sender, clock))
        runs.extend(made)
        return made[0]

    yield started
    for run in runs:
        await run.sender.close()


@pytest.fixture
def certificate() -> Path:
    """The certificate of `tls_server`."""
    return CERTIFICATE


@pytest.fixture
def sse_head() -> bytes:
    """The head of a streamed response."""
    return SSE_HEAD


@pytest.fixture
async def pool(server: Any) -> AsyncIterator[Callable[..., Any]]:
    """Start a pool: `await pool(3, active=1, input_len=9)`."""
    runs: list[PoolRun] = []

    async def started(workers: int, *, active: int = 0, url: str = "", **workload: Any) -> PoolRun:
        clock = MonotonicClock()
        setup = setup_for(url or server.url, clock, **workload)
        runs.append(PoolRun(await SenderPool.start(ARGV, setup, workers=workers, active=active), clock))
        return runs[-1]

    yield started
    for run in runs:
        await run.pool.close()
