"""Metrics are pushed to a collector that takes them, refuses them, hangs or is not there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from servetop.core.errors import UsageError
from servetop.run.exporter.metrics_socket import listening_socket
from servetop.run.exporter.otlp import otlp_push
from servetop.run.exporter.otlp.otlp_endpoint import metrics_endpoint
from servetop.run.exporter.otlp.otlp_push import OtlpPush


class Receiver:
    """A collector: the requests that it received, and the status that it answers with; None: it never does."""

    def __init__(self) -> None:
        self.status: int | None = 200
        self.received: list[tuple[str, bytes]] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.ensure_future(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    length = next(
                        int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-l")
                    )
                    self.received.append((head, await reader.readexactly(length)))
                    if self.status is None:
                        await asyncio.sleep(3600)
                    writer.write(f"HTTP/1.1 {self.status} Status\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        finally:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def collector() -> AsyncIterator[tuple[Receiver, str]]:
    receiver = Receiver()
    listening = listening_socket("127.0.0.1", 0)
    server = await asyncio.start_server(receiver.accept, sock=listening)
    try:
        yield receiver, f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.close()
        for task in receiver.tasks:
            task.cancel()
        await asyncio.gather(*receiver.tasks, return_exceptions=True)
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


class Notes(list[str]):
    """The notes, and the number of requests."""

    pushes = 0

    def request(self) -> bytes:
        self.pushes += 1
        return b'{"resourceMetrics":[]}'


@contextlib.asynccontextmanager
async def pushing(endpoint: str, *, period: float = 0.02) -> AsyncIterator[Notes]:
    notes = Notes()
    push = OtlpPush(metrics_endpoint(endpoint), notes.request, note=notes.append, period=period)
    following = asyncio.ensure_future(push.follow())
    try:
        yield notes
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_collector_receives_requests_of_the_standard_and_one_at_the_end() -> None:
    async with collector() as (receiver, url):
        async with pushing(url) as notes:
            await until(lambda: len(receiver.received) >= 3)
            before = len(receiver.received)
        assert len(receiver.received) > before
        head, body = receiver.received[0]
        assert head.startswith("POST /v1/metrics HTTP/1.1\r\n")
        assert "content-type: application/json" in head.lower()
        assert body == b'{"resourceMetrics":[]}'
        assert notes == []


async def test_a_collector_that_refuses_is_noted_once_and_again_when_it_takes_metrics() -> None:
    async with collector() as (receiver, url):
        receiver.status = 503
        async with pushing(url) as notes:
            await until(lambda: len(receiver.received) >= 4)
            receiver.status = 200
            await until(lambda: len(notes) >= 2)
    assert notes == [
        f"the collector at {url}/v1/metrics does not take metrics (HTTP 503)",
        f"the collector at {url}/v1/metrics takes metrics again",
    ]


async def test_a_collector_that_is_not_there_is_one_note() -> None:
    async with collector() as (_, url):
        pass
    async with pushing(url) as notes:
        await until(lambda: notes.pushes >= 5)
    assert len(notes) == 1
    assert "does not take metrics" in notes[0]


async def test_a_collector_that_is_not_there_is_noted_before_a_short_run_has_ended() -> None:
    async with collector() as (_, url):
        pass
    async with pushing(url, period=3600.0) as notes:
        await until(lambda: notes)


async def test_a_collector_that_hangs_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_push, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(otlp_push, "LAST_REQUEST_SECONDS", 0.2)
    async with collector() as (receiver, url):
        receiver.status = None
        async with pushing(url) as notes:
            await until(lambda: notes)
    assert notes == [f"the collector at {url}/v1/metrics does not take metrics (no response within 0.2 s)"]


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://otel:4318", "http://otel:4318/v1/metrics"),
        ("https://otel:4318/", "https://otel:4318/v1/metrics"),
        ("http://otel/otlp/v1/metrics", "http://otel/otlp/v1/metrics"),
    ],
)
def test_an_address_without_a_path_gets_that_of_the_standard(text: str, endpoint: str) -> None:
    assert metrics_endpoint(text) == endpoint


@pytest.mark.parametrize("text", ["otel:4318", "ftp://otel", "http://", "http://otel:port"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a collector"):
        metrics_endpoint(text)
