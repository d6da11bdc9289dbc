"""Replays responses on loopback, block by block, to a client in the same event loop; standard library only."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import struct
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from tests.corpus.peers.readings import PeerReading, ResponseJob, load_jobs, write_readings

_TURNS = 100
"""Turns of the event loop after each block: more than a client needs to read it, so that each block comes alone."""
_LIMIT = 30.0
"""Seconds until a response counts as one whose end the peer does not find."""


class Replay:
    """An HTTP server that answers every request with the blocks of one response."""

    def __init__(self) -> None:
        self.url = ""
        self._job = ResponseJob(name="", blocks=(), endpoint="", stream=True, content_type="")

    def load(self, job: ResponseJob) -> None:
        """Answer the next requests with this response."""
        self._job = job

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen on a free port of loopback."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await _read_request(reader)
            writer.write(_head(self._job))
            await _let_client_read(writer)
            for block in self._job.blocks:
                writer.write(b"%x\r\n%b\r\n" % (len(block), block))
                await _let_client_read(writer)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        writer.close()


async def _read_request(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"transfer-encoding: chunked" in head:
        await reader.readuntil(b"0\r\n\r\n")
    _, _, length = head.partition(b"content-length:")
    await reader.readexactly(int(length.split(b"\r\n", 1)[0] or 0))


def _head(job: ResponseJob) -> bytes:
    kind = f"Content-Type: {job.content_type}\r\n" if job.content_type else ""
    return f"HTTP/1.1 200 OK\r\n{kind}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()


async def _let_client_read(writer: asyncio.StreamWriter) -> None:
    descriptor = writer.get_extra_info("socket").fileno()
    while descriptor >= 0 and _unacknowledged(descriptor):
        await asyncio.sleep(0)
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _unacknowledged(descriptor: int) -> int:
    """Return the bytes that have not arrived at the client's socket."""
    (size,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)))
    return int(size)


Reader = Callable[[Replay, ResponseJob], Awaitable[PeerReading]]
"""Sends one request to the replay with a peer's client, and returns what the client reads."""


def main(read: Reader) -> None:
    """Read the responses in the file of the first argument, and write the readings into that of the second."""
    jobs, results = map(Path, sys.argv[1:3])
    write_readings(results, asyncio.run(_read_all(load_jobs(jobs, ResponseJob), read)))


async def _read_all(jobs: list[ResponseJob], read: Reader) -> dict[str, PeerReading]:
    replay, readings = Replay(), dict[str, PeerReading]()
    async with replay.serving():
        for job in jobs:
            replay.load(job)
            try:
                readings[job.name] = await asyncio.wait_for(read(replay, job), _LIMIT)
            except TimeoutError:
                readings[job.name] = PeerReading(ok=False, error=f"the client waited more than {_LIMIT:.0f} s")
    return readings
