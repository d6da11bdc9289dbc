"""Servers to attach to and engines to start, all real and on loopback."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from servetop.core.clock import MonotonicClock
from servetop.core.config import EngineConfig

HERE = Path(__file__).parent
CERTIFICATE = HERE.parent / "loadgen" / "data" / "localhost.crt"
TLS_HANDSHAKE = b"\x16"


class PageServer:
    """An HTTP server with changeable pages; `pages[path] = (status, body)`, what is not there is a 404."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, bytes]] = {}
        self.headers: dict[str, str] = {}
        """Further header lines by path, each with its end."""
        self.authorization: list[str | None] = []
        self.heads: list[str] = []
        """Heads of all requests, as received."""
        self.answering = asyncio.Event()
        """Cleared: requests are received and get no response."""
        self.answering.set()
        self.prompt: set[str] = set()
        """Paths that get a response all the same."""
        self.url = ""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, port: int = 0, *, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=tls)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def vanish(self) -> None:
        """As if it was killed: open connections break, new ones are refused."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                first = await reader.readexactly(1)
                if first == TLS_HANDSHAKE:
                    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    break
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
                if head.split(" ")[1] not in self.prompt:
                    await self.answering.wait()
                writer.write(self._answer(head))
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

    def _answer(self, head: str) -> bytes:
        self.heads.append(head)
        lines = head.split("\r\n")
        keys = [line.split(": ", 1)[1] for line in lines if line.lower().startswith("authorization: ")]
        self.authorization.append(keys[0] if keys else None)
        path = lines[0].split(" ")[1]
        status, body = self.pages.get(path, (404, b'{"detail":"Not Found"}'))
        more = self.headers.get(path, "").encode()
        return b"HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s" % (status, more, len(body), body)


@pytest.fixture
def refusing_url() -> Iterator[str]:
    """An address that refuses connections, and that no other process can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and never listens
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def vllm_data() -> Path:
    """Captured pages and logs of vLLM."""
    return HERE / "data" / "vllm"


@pytest.fixture
async def server() -> AsyncIterator[PageServer]:
    """A server without pages."""
    started = PageServer()
    await started.start()
    yield started
    await started.vanish()


@pytest.fixture
async def vllm_server(server: PageServer, vllm_data: Path) -> PageServer:
    """A server that responds like vLLM 0.32 with 63 usable KV blocks."""
    server.pages = {
        "/health": (200, b""),
        "/version": (200, (vllm_data / "version.json").read_bytes()),
        "/v1/models": (200, (vllm_data / "v1_models.json").read_bytes()),
        "/metrics": (200, (vllm_data / "metrics_0.32.0.txt").read_bytes()),
    }
    return server


@pytest.fixture
def stand_in() -> Callable[..., EngineConfig]:
    """The configuration that starts tests/engines/stand_in_engine.py with these options as a vLLM."""

    def configured(*options: str, start_timeout: float = 30.0) -> EngineConfig:
        return EngineConfig(
            name="vllm",
            model="facebook/opt-125m",
            command=(sys.executable, str(HERE / "stand_in_engine.py")),
            extra_args=options,
            start_timeout=start_timeout,
        )

    return configured


@pytest.fixture
def clock() -> MonotonicClock:
    return MonotonicClock()


@pytest.fixture
async def tls_server(vllm_server: PageServer) -> AsyncIterator[PageServer]:
    """A server with the same pages behind TLS, with a self-signed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    started = PageServer()
    started.pages = vllm_server.pages
    await started.start(tls=context)
    yield started
    await started.vanish()
