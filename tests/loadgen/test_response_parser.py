"""Responses of servers that do not write HTTP/1.1 as most do are read, or their protocol is named."""

from __future__ import annotations

from typing import Any

import pytest

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from servetop.loadgen.transport.response_parser import ResponseParser
from tests.loadgen.load_run import only_record

EVENTS = b'data: {"choices": [{"index": 0, "text": " a"}]}\n\ndata: [DONE]\n\n'
CHUNK = b"%x\r\n%s\r\n0\r\n\r\n" % (len(EVENTS), EVENTS)
START = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(EVENTS)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
ODD = {
    "lf": (START + b"Server: a\r\n" + LENGTH + b"\r\n").replace(b"\r\n", b"\n") + EVENTS,
    "lf, chunked": b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n" + CHUNK,
    "folded": START + b"X-Trace: a\r\n b\r\n\tc\r\n" + LENGTH + b"\r\n" + EVENTS,
    "folded framing": START + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CHUNK,
    "length twice": START + LENGTH + LENGTH + b"\r\n" + EVENTS,
    "length in a list": START + b"Content-Length: %d, %d\r\n\r\n" % (len(EVENTS), len(EVENTS)) + EVENTS,
    "blank before the colon": START + LENGTH.replace(b":", b" :") + b"\r\n" + EVENTS,
    "interim": b"HTTP/1.1 102 Wait\n\n" + START + b"X: a\r\n b\r\n" + LENGTH + b"\r\n" + EVENTS,
}
BOTH = {
    "length, then chunked": START + b"Content-Length: 7\r\n" + CHUNKED + b"\r\n" + CHUNK,
    "chunked, then length": START + CHUNKED + b"Content-Length: 9999\r\n\r\n" + CHUNK,
    "keep-alive": START + b"Connection: keep-alive\r\n" + CHUNKED + LENGTH + b"\r\n" + CHUNK,
}


@pytest.mark.parametrize("response", [*ODD.values()], ids=[*ODD])
@pytest.mark.parametrize("pieces", [1, 3, 40])
async def test_an_odd_response_is_read_and_its_connection_used_again(
    server: Any, start: Any, response: bytes, pieces: int
) -> None:
    records, connections = await _three(server, start, response, pieces=pieces)
    assert [(each.status, each.error, each.output_tokens) for each in records] == [(RequestStatus.OK, None, 1)] * 3
    assert connections == 1


@pytest.mark.parametrize("response", [*BOTH.values()], ids=[*BOTH])
async def test_chunked_counts_beside_a_length_and_the_connection_is_not_used_again(
    server: Any, start: Any, response: bytes
) -> None:
    records, connections = await _three(server, start, response, pieces=1)
    assert [(each.status, each.error, each.output_tokens) for each in records] == [(RequestStatus.OK, None, 1)] * 3
    assert connections == 3


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (START + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "the response is not valid HTTP/1.1 (Duplicate"),
        (START + b"no colon\r\n\r\n", "the response is not valid HTTP/1.1 (Invalid header token"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the response is not valid HTTP/1.1 (it starts with 'SSH-2.0-OpenSSH_9.2')"),
        (b"\xff\x00\x1b[2J", "the response is not valid HTTP/1.1 (it starts with '\\ufffd\\x00\\x1b[2J')"),
        (b"+" * 5000, f"the response is not valid HTTP/1.1 (it starts with '{'+' * 60}')"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "the server answers with TLS: give an address that begins with https://"),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", "the server speaks HTTP/2 only, as gRPC servers do"),
    ],
)
async def test_what_is_not_http_1_is_named(server: Any, start: Any, response: bytes, error: str) -> None:
    server.script = lambda request: request.raw(response)
    record = await only_record(start(server.url))
    assert record.status is RequestStatus.ERROR
    assert (record.error or "").startswith(error)


@pytest.mark.parametrize("response", [*ODD.values(), *BOTH.values()], ids=[*ODD, *BOTH])
def test_a_response_may_arrive_byte_by_byte(response: bytes) -> None:
    seen = _Seen()
    parser = seen.parser = ResponseParser(seen)
    for at in range(len(response)):
        assert parser.feed(response[at : at + 1], in_head=not seen.status) is None
    assert (seen.status, seen.body, seen.complete) == (200, EVENTS, True)


class _Seen:
    """The parts of one response, as a parser reports them."""

    def __init__(self) -> None:
        self.parser: ResponseParser
        self.status, self.body, self.complete = 0, b"", False

    def on_message_begin(self) -> None:
        assert not self.body

    def on_headers_complete(self) -> None:
        self.status = self.parser.status if self.parser.status >= 200 else 0

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.complete = self.status != 0


async def _three(server: Any, start: Any, response: bytes, *, pieces: int) -> tuple[list[Any], int]:
    """Send three requests one after the other; return their records and the number of connections."""
    size = -(-len(response) // pieces)

    async def answer(request: Any) -> None:
        for at in range(0, len(response), size):
            await request.raw(response[at : at + size])

    server.script = answer
    run = start(server.url)
    run.begin(StageConfig(max_concurrency=1, num_prompts=3))
    await run.finish()
    return run.records, server.connections
