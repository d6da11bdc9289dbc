"""The server's answers to a request; each mode says how an honest client must count it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.chaos.ledger import What
from tests.chaos.request import Answer, Request, Settings

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"
MIB = 1 << 20
FOREVER = 3600.0
"""Seconds of silence of a server that never continues; every client times out before."""


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def _gone(request: Request) -> What:
    """Keep silent until the client has had enough."""
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(request.reader.read(1), FOREVER)
    return What.BROKEN


def _events(request: Request, *, finish: bool = False) -> Iterator[bytes]:
    """The events of the tokens, and what was sent is counted as they are taken."""
    for number in range(request.wanted):
        request.sent += 1
        last = finish and number == request.wanted - 1
        yield request.event(request.word(number), tokens=number + 1, finish="length" if last else None)


async def honest(request: Request, settings: Settings) -> What:
    await asyncio.sleep(settings.first)
    await request.raw(CHUNKED)
    for event in _events(request):
        await request.raw(chunk(event))
        await asyncio.sleep(settings.gap)
    request.before_end()
    await request.raw(chunk(request.last_usage() + DONE) + b"0\r\n\r\n")
    return What.ANSWERED


def reshaped(shape: Callable[[bytes], bytes], *, what: What = What.ANSWERED) -> Answer:
    """An honest stream whose bytes are changed as a whole, before they are cut into chunks."""

    async def answer(request: Request, settings: Settings) -> What:
        await asyncio.sleep(settings.first)
        stream = shape(b"".join(_events(request)) + request.last_usage() + DONE)
        await request.raw(CHUNKED)
        for start in range(0, len(stream) // 2, 40):
            await request.raw(chunk(stream[start : min(start + 40, len(stream) // 2)]))
            await asyncio.sleep(settings.gap)
        await request.raw(chunk(stream[len(stream) // 2 :]) + b"0\r\n\r\n")
        return what

    return answer


async def byte_by_byte(request: Request, settings: Settings) -> What:
    request.content["max_tokens"] = min(request.wanted, 2)
    stream = b"".join(_events(request)) + request.last_usage() + DONE
    await request.raw(CHUNKED)
    for value in stream:
        await request.raw(chunk(bytes((value,))))
        await asyncio.sleep(0)
    await request.raw(b"0\r\n\r\n")
    return What.ANSWERED


async def without_chunks(request: Request, settings: Settings) -> What:
    """The connection's end is the answer's end."""
    await request.raw(HEAD + b"connection: close\r\n\r\n")
    for event in _events(request):
        await request.raw(event)
        await asyncio.sleep(settings.gap)
    await request.raw(request.last_usage() + DONE)
    request.writer.close()
    return What.ANSWERED


async def without_done(request: Request, settings: Settings) -> What:
    """A finish reason, the usage and a clean end of the body."""
    await request.raw(CHUNKED)
    await request.raw(chunk(b"".join(_events(request, finish=True)) + request.last_usage()) + b"0\r\n\r\n")
    return What.ANSWERED


async def several_tokens_an_event(request: Request, settings: Settings) -> What:
    await request.raw(CHUNKED)
    while request.sent < request.wanted:
        request.sent = min(request.wanted, request.sent + 4)
        await request.raw(chunk(request.event(" some words", tokens=request.sent)))
        await asyncio.sleep(settings.gap)
    await request.raw(chunk(request.last_usage() + DONE) + b"0\r\n\r\n")
    return What.ANSWERED


async def tool_calls(request: Request, settings: Settings) -> What:
    await request.raw(CHUNKED)
    for number in range(request.wanted):
        request.sent += 1
        call = {"index": 0, "function": {"name": "look" if number == 0 else None, "arguments": f"{number},"}}
        content = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "text": ""}]}
        await request.raw(chunk(b"data: " + json.dumps(content).encode() + b"\n\n"))
    await request.raw(chunk(request.last_usage() + DONE) + b"0\r\n\r\n")
    return What.ODD


def wrong_usage(tokens: Callable[[int], object]) -> Answer:
    async def answer(request: Request, settings: Settings) -> What:
        await request.raw(CHUNKED + chunk(b"".join(_events(request))))
        usage = {"prompt_tokens": 8, "completion_tokens": tokens(request.sent)}
        content = json.dumps({"choices": [], "usage": usage}).encode()
        await request.raw(chunk(b"data: " + content + b"\n\n" + DONE) + b"0\r\n\r\n")
        return What.ODD

    return answer


async def interim_and_trailers(request: Request, settings: Settings) -> What:
    await request.raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + CHUNKED)
    body = b"".join(_events(request)) + request.last_usage() + DONE
    await request.raw(b"%x;name=value\r\n%s\r\n0\r\nx-trailer: yes\r\n\r\n" % (len(body), body))
    return What.ANSWERED


def status(line: str, body: bytes, *, headers: str = "", close: bool = False) -> Answer:
    async def answer(request: Request, settings: Settings) -> What:
        head = f"HTTP/1.1 {line}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
        await request.raw(head.encode("utf-8") + body)
        if close:
            request.writer.close()
        return What.BROKEN

    return answer


def bytes_and(data: bytes, then: str, *, tokens: int = 0, what: What = What.BROKEN) -> Answer:
    """These bytes (after a few honest tokens), and then `close`, `reset` or `silence`."""

    async def answer(request: Request, settings: Settings) -> What:
        if tokens:
            few = replace(request, content={**request.content, "max_tokens": tokens})
            await request.raw(CHUNKED + b"".join(chunk(event) for event in _events(few)))
            request.sent = few.sent
        await request.raw(data)
        if then == "silence":
            return await _gone(request)
        if then == "reset":
            request.writer.transport.abort()
        request.writer.close()
        return what

    return answer


def endless(beginning: bytes, piece: bytes, *, total: int = 100 * MIB) -> Answer:
    async def answer(request: Request, settings: Settings) -> What:
        await request.raw(beginning)
        try:
            await request.flood(piece, total=total)
        except OSError:
            return What.BROKEN
        request.writer.close()
        return What.BROKEN

    return answer


async def slow_headers(request: Request, settings: Settings) -> What:
    try:
        for value in HEAD * 1000:
            await request.raw(bytes((value,)))
            await asyncio.sleep(0.5)
    except OSError:
        pass
    return What.BROKEN


async def slow_comments(request: Request, settings: Settings) -> What:
    """Alive for ever, and without a token."""
    await request.raw(CHUNKED)
    try:
        while not request.writer.is_closing():
            await request.raw(chunk(b": ping\n\n"))
            await asyncio.sleep(0.05)
    except OSError:
        pass
    return What.BROKEN


def gzipped(shape: Callable[[bytes], bytes], *, what: What) -> Answer:
    async def answer(request: Request, settings: Settings) -> What:
        body = shape(b"".join(_events(request)) + request.last_usage() + DONE)
        head = HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
        await request.raw(head + body)
        return what

    return answer


@functools.cache
def bomb(beginning: bytes = b"data: ", piece: bytes = b"x") -> bytes:
    """A quarter of a gigabyte, packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(beginning)
    return packed + b"".join(packer.compress(piece * MIB) for _ in range(256)) + packer.flush()


def only_cr(stream: bytes) -> bytes:
    return stream.replace(b"\n", b"\r")


def crlf(stream: bytes) -> bytes:
    return stream.replace(b"\n", b"\r\n")


def many_lines(stream: bytes) -> bytes:
    """Each event's JSON over two data lines."""
    return stream.replace(b', "object"', b',\ndata: "object"')


def no_blank(stream: bytes) -> bytes:
    return stream.replace(b"data: ", b"data:")


def with_ids(stream: bytes) -> bytes:
    return stream.replace(b"data: ", b": a comment\nid: 7\nevent: message\nretry: 100\ndata: ")
