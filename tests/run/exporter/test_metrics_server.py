"""The HTTP server of the metrics: what it answers, and that no scraper holds up anything."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from servetop.run.exporter import metrics_server
from servetop.run.exporter.metrics_server import MOST_CONNECTIONS, MetricsServer
from servetop.run.exporter.metrics_socket import listening_socket

TEXT = {False: "servetop_x 1\n", True: "servetop_x 1\n# EOF\n"}


@contextlib.asynccontextmanager
async def serving(text: str | None = None) -> AsyncIterator[int]:
    """The port of a server that answers in this event loop."""
    listening = listening_socket("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = MetricsServer(listening, lambda openmetrics: TEXT[openmetrics] if text is None else text)
    following = asyncio.ensure_future(server.follow())
    try:
        yield port
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def answer(port: int, request: bytes) -> tuple[str, str, str]:
    """Status line, headers and body of the response to some bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    data = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    head, _, body = data.decode().partition("\r\n\r\n")
    status, _, headers = head.partition("\r\n")
    return status, headers, body


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: here", *headers, "", ""]).encode()


async def test_a_scraper_gets_the_metrics_in_its_format() -> None:
    async with serving() as port:
        status, headers, body = await answer(port, get("/metrics?job=servetop"))
        assert (status, body) == ("HTTP/1.1 200 OK", TEXT[False])
        assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in headers
        assert f"Content-Length: {len(body)}" in headers
        _, headers, body = await answer(port, get("/metrics", "accept: application/openmetrics-text; version=1.0.0"))
        assert body == TEXT[True]
        assert "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8" in headers
        status, headers, body = await answer(port, get("/metrics", method="HEAD"))
        assert (status, body) == ("HTTP/1.1 200 OK", "")
        assert f"Content-Length: {len(TEXT[False])}" in headers


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/"), 404),
        (get("/metrics/"), 404),
        (get("/metrics", method="POST"), 405),
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\xff\xfe\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", 400),
    ],
    ids=["another page", "another path", "another method", "no HTTP", "TLS", "too long"],
)
async def test_anything_else_is_refused(request_: bytes, status: int) -> None:
    async with serving() as port:
        assert (await answer(port, request_))[0].split()[1] == str(status)
        assert (await answer(port, get("/metrics")))[2] == TEXT[False]


async def test_connections_are_bounded_in_number_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "REQUEST_SECONDS", 1.0)
    async with serving() as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_CONNECTIONS)]
        status, _, _ = await answer(port, get("/metrics"))
        assert status.split()[1] == "503"
        for reader, _ in silent:
            with contextlib.suppress(ConnectionError):  # aborted after its time
                assert await asyncio.wait_for(reader.read(), 60) == b""
        assert (await answer(port, get("/metrics")))[2] == TEXT[False]
        for _, writer in silent:
            writer.close()


async def test_a_scraper_that_reads_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "RESPONSE_SECONDS", 0.5)
    async with serving("x" * (64 << 20)) as port:
        stuck = socket.create_connection(("127.0.0.1", port))
        stuck.sendall(get("/metrics"))
        status, _, _ = await answer(port, get("/metrics", method="HEAD"))
        assert status == "HTTP/1.1 200 OK"
        await asyncio.sleep(1.0)
        received = 0
        with contextlib.suppress(ConnectionError):
            while data := stuck.recv(1 << 20):
                received += len(data)
        stuck.close()
        assert received < 64 << 20


async def test_the_port_is_closed_with_the_server() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await answer(port, get("/metrics"))  # by then the first connection is accepted
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
