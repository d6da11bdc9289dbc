"""A head that a strict parser refuses is rewritten as RFC 9112 reads it."""

from __future__ import annotations

import pytest

from servetop.loadgen.transport.response_head import rewritten

START = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 200 OK\nA: b\nC: d\n\nbody\n", START + b"A: b\r\nC: d\r\n\r\nbody\n"),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", START + b"\r\n"),
        (START + b"A: b\r\n c\r\n\td\r\nE: f\r\n\r\n", START + b"A: b c d\r\nE: f\r\n\r\n"),
        (START + b" lost: x\r\n\tlost\r\nA: b\r\n\r\n", START + b"A: b\r\n\r\n"),
        (START + b"A \t: b\r\n\r\n", START + b"A: b\r\n\r\n"),
        (START + b"Content-Length: 2\r\ncontent-length: 2\r\n\r\nhi", START + b"content-length: 2\r\n\r\nhi"),
        (START + b"Content-Length: 2, 2\r\n\r\nhi", START + b"content-length: 2\r\n\r\nhi"),
        (
            START + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
            START + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        ),
        (
            START + b"Content-Length: 9\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\n\r\n",
            START + b"Transfer-Encoding: gzip, Chunked\r\nconnection: close\r\n\r\n0\r\n\r\n",
        ),
        (b"HTTP/1.1 103 Early Hints\nA: b\n\n" + START, b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"),
        (b"HTTP/1.1 100 \n\nHTTP/1.1 200 OK\n\nx\n\n", b"HTTP/1.1 100 \r\n\r\n" + START + b"\r\nx\n\n"),
        (START + b"no colon\r\n\r\n", START + b"no colon \r\n\r\n"),
        (START + b"A: b\r\n", b""),
    ],
)
def test_a_head_is_rewritten(head: bytes, expected: bytes) -> None:
    assert rewritten(head) == expected
