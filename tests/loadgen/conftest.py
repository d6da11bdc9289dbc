"""A real HTTP server whose behaviour each test scripts, and a way to play a load against it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import ConnectionConfig, StageConfig, WorkloadConfig
from servetop.core.events import Action, Command, RequestRecord
from servetop.core.tick import ClientTick, merge_client_ticks
from servetop.engines.dialects import dialect_for
from servetop.loadgen.messages import SenderReport, SenderSetup
from servetop.loadgen.sender.sender import Sender
from servetop.loadgen.transport.transport_factory import transport_factory
from servetop.loadgen.worker.sender_pool import SenderPool
from servetop.workload.plan import LoadPhase, LoadPlan
from tests.harness import SLOW_MACHINE
from tests.loadgen.pool_run import ARGV, PoolRun, setup_for

CERTIFICATE = Path(__file__).parent / "data" / "localhost.crt"
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(eq=False)
class Served:
    """One request as the server got it, and the means to answer it."""

    number: int
    """Of the request, over all connections."""
    connection: int
    head: str
    content: dict[str, Any]
    writer: asyncio.StreamWriter

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, content: dict[str, Any]) -> None:
        await self.chunk(b"data: " + json.dumps(content).encode() + b"\n\n")

    async def token(self, count: int) -> None:
        await self.event(
            {"choices": [{"index": 0, "text": f" {count}"}], "usage": {"prompt_tokens": 5, "completion_tokens": count}}
        )

    async def tokens(self, count: int, *, gap: float = 0.0) -> None:
        for number in range(1, count + 1):
            await self.token(number)
            await asyncio.sleep(gap)

    async def end(self) -> None:
        await self.chunk(b"data: [DONE]\n\n")
        await self.raw(b"0\r\n\r\n")

    async def status(self, line: str, body: bytes) -> None:
        head = f"HTTP/1.1 {line}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        await self.raw(head.encode() + body)


Script = Callable[[Served], Awaitable[None]]


async def three_tokens(request: Served) -> None:
    await request.raw(SSE_HEAD)
    await request.tokens(3)
    await request.end()


class ScriptedServer:
    """Runs `script` for every request; a connection that the script leaves open is kept alive."""

    def __init__(self) -> None:
        self.script: Script = three_tokens
        self.served: list[Served] = []
        self.connections = 0
        self.active = 0
        self.most_active = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str = "127.0.0.1", *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._accept, host, port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{name}:{self.port}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length")
                )
                content = json.loads(await reader.readexactly(length))
                request = Served(len(self.served), connection, head, content, writer)
                self.served.append(request)
                self.active += 1
                self.most_active = max(self.most_active, self.active)
                try:
                    await self.script(request)
                finally:
                    self.active -= 1
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def tls_server() -> AsyncIterator[ScriptedServer]:
    """Its certificate is self-signed: trusted only where `SSL_CERT_FILE` names it."""
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


@dataclass(eq=False)
class LoadRun:
    """A sender at work, and all that it reported."""

    sender: Sender
    clock: MonotonicClock
    reports: list[SenderReport] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _commands: int = 0

    def take(self, report: SenderReport) -> None:
        self.reports.append(report)
        self._news.set()

    async def until(self, condition: Callable[[], object], *, seconds: float = 10.0) -> None:
        """Wait for something that a report brings."""
        async with asyncio.timeout(seconds * SLOW_MACHINE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def finish(self, *, seconds: float = 10.0) -> None:
        await self.until(lambda: self.reports and self.reports[-1].state is LoadPhase.FINISHED, seconds=seconds)

    def begin(
        self, *stages: StageConfig, drain: bool = False, drain_timeout: float = 5.0 * SLOW_MACHINE, ahead: float = 0.02
    ) -> None:
        self.sender.begin(
            LoadPlan(
                segments=tuple(enumerate(stages)),
                begin=self.clock.now() + ahead,
                drain_at_stages=drain,
                drain_timeout=drain_timeout,
            )
        )

    def tell(self, action: Action, value: float | None = None) -> None:
        self._commands += 1
        self.sender.apply(Command(id=self._commands, at=self.clock.now(), action=action, value=value))

    @property
    def records(self) -> Sequence[RequestRecord]:
        return sorted((record for report in self.reports for record in report.records), key=lambda each: each.id)

    @property
    def replies(self) -> Sequence[str | None]:
        return [command.reply for report in self.reports for command in report.replies]

    @property
    def total(self) -> ClientTick:
        """The sum of all ticks."""
        return merge_client_ticks([report.tick for report in self.reports], gauges=self.reports[-1].tick.gauges)


@pytest.fixture
def transport() -> str:
    """Which transport `start` takes; a module whose tests hold for every one gives them all."""
    return "raw"


@pytest.fixture
async def start(transport: str) -> AsyncIterator[Callable[..., LoadRun]]:
    """Starts a sender against a URL: `start(url, input_len=5, ...)`, with fields of WorkloadConfig."""
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
            seed=1,
            api_key=api_key,
            connection=connection or ConnectionConfig(transport=transport),
        )
        dialect = dialect_for(setup.workload.endpoint, model="m", continuous_usage=continuous_usage)
        news: list[LoadRun] = []
        sender = Sender(
            setup,
            dialect,
            clock=clock,
            transport=transport_factory(setup, dialect, clock),
            report=lambda report: news[0].take(report),
        )
        news.append(LoadRun(sender, clock))
        runs.extend(news)
        return news[0]

    yield started
    for run in runs:
        await run.sender.close()


@pytest.fixture
def certificate() -> Path:
    """Of `tls_server`."""
    return CERTIFICATE


@pytest.fixture
def sse_head() -> bytes:
    """The head of a streamed answer."""
    return SSE_HEAD


@pytest.fixture
async def pool(server: Any) -> AsyncIterator[Callable[..., Any]]:
    """`await pool(3, active=1, input_len=9)`."""
    runs: list[PoolRun] = []

    async def started(workers: int, *, active: int = 0, url: str = "", **workload: Any) -> PoolRun:
        clock = MonotonicClock()
        setup = setup_for(url or server.url, clock, **workload)
        runs.append(PoolRun(await SenderPool.start(ARGV, setup, workers=workers, active=active), clock))
        return runs[-1]

    yield started
    for run in runs:
        await run.pool.close()
