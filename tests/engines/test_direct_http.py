"""HTTP responses byte by byte: which ones the client accepts, and how it reads them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from servetop.engines.control.control_client import HttpResult, ServerClient

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Scripted:
    """Responds to the requests of each connection with the next prepared response, then closes it."""

    def __init__(self, *connections: Sequence[bytes]) -> None:
        self._connections = iter(connections)
        self.heads: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            for answer in next(self._connections):
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(answer)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def asking(*connections: Sequence[bytes]) -> AsyncIterator[tuple[ServerClient, Scripted]]:
    script = Scripted(*connections)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    client = ServerClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/base")
    try:
        yield client, script
    finally:
        await client.close()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        OK + b"HTTP/1.1 500 Nobody Asked\r\nContent-Length: 3\r\n\r\nbad",
        OK + b"garbage",
    ],
    ids=["sized", "chunked", "until the end", "behind an interim answer", "and another answer", "and garbage"],
)
async def test_a_response_ends_at_its_declared_length(answer: bytes) -> None:
    async with asking([answer]) as (client, _):
        assert await client.request("/x") == HttpResult(200, b"ok")


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (b"", "it closed the connection without a response"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "it closed the connection in the middle of its response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "it closed the connection in the middle of its response"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "another protocol"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "it sends malformed HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * (1 << 17), "response headers are longer than 64 KiB"),
    ],
    ids=["nothing", "no head", "too short", "upgrade", "no HTTP", "endless header"],
)
async def test_an_incomplete_response_is_an_error(answer: bytes, trouble: str) -> None:
    async with asking([answer]) as (client, _):
        found = await client.request("/x")
    assert trouble in found.error
    assert not found.refused


async def test_questions_one_after_the_other_share_a_connection() -> None:
    async with asking([OK, OK], [b"HTTP/1.1 500 A Second Connection\r\nContent-Length: 0\r\n\r\n"]) as (client, script):
        assert [await client.request(path) for path in ("/x", "/y")] == [HttpResult(200, b"ok")] * 2
    assert [head.split()[1] for head in script.heads] == [b"/base/x", b"/base/y"]


async def test_a_kept_connection_that_the_server_has_closed_is_replaced() -> None:
    async with asking([OK], [OK]) as (client, script):
        assert [await client.request(path) for path in ("/x", "/y")] == [HttpResult(200, b"ok")] * 2
    assert len(script.heads) == 2


async def test_a_client_that_was_closed_answers_with_trouble() -> None:
    async with asking([OK]) as (client, _):
        await client.close()
        assert (await client.request("/x")).error == "the client has been closed"


async def test_what_a_server_sends_between_two_requests_is_not_the_next_response() -> None:
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(OK)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = ServerClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        assert await client.request("/x") == HttpResult(200, b"ok")
        connections[0].write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        with suppress(OSError):
            await connections[0].wait_closed()
        assert await client.request("/x") == HttpResult(200, b"ok")
        assert len(connections) == 2
    finally:
        await client.close()
        for each in connections:
            with suppress(OSError):
                await each.wait_closed()
        server.close()
        await server.wait_closed()


async def test_a_response_is_freed_without_garbage_collection() -> None:
    async with asking([OK] * 4) as (client, _):
        gc.collect()
        gc.disable()
        try:
            for _ in range(4):
                assert (await client.request("/x")).ok
            names = [type(each).__qualname__ for each in gc.get_objects()]
            assert not {"HttpResponseParser", "_Response"}.intersection(names)
        finally:
            gc.enable()
