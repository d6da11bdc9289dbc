"""Bodies are decoded within limits, whatever the server sends."""

import gzip
import zlib

import pytest

from servetop.engines.control.http_body import MAX_BODY_BYTES, MAX_BODY_LINES, Body, ResponseError, excerpt


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", b"text"),
        ("Identity", b"text"),
        (" gzip ", gzip.compress(b"text", mtime=0)),
        ("deflate", zlib.compress(b"text")),
    ],
)
def test_a_body_is_decoded_from_single_bytes(encoding: str, packed: bytes) -> None:
    body = Body(encoding)
    for byte in packed:
        body.take(bytes([byte]))
    assert body.whole() == b"text"


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ResponseError, match="br"):
        Body("br")


def test_a_broken_stream_is_refused() -> None:
    with pytest.raises(ResponseError, match="gzip"):
        Body("gzip").take(b"not gzip")


def test_the_longest_body_is_kept_and_one_more_byte_is_refused() -> None:
    body = Body("")
    body.take(bytes(MAX_BODY_BYTES))
    assert len(body.whole()) == MAX_BODY_BYTES
    with pytest.raises(ResponseError, match="longer than 8 MiB"):
        body.take(b"x")


def test_a_compressed_bomb_is_refused() -> None:
    with pytest.raises(ResponseError, match="longer than 8 MiB"):
        Body("gzip").take(gzip.compress(bytes(MAX_BODY_BYTES + 1), compresslevel=1))


def test_a_body_of_too_many_lines_is_refused() -> None:
    body = Body("")
    body.take(b"\n" * (MAX_BODY_LINES + 1))
    with pytest.raises(ResponseError, match="lines"):
        body.whole()


def test_an_excerpt_is_one_printable_line() -> None:
    assert excerpt(b"a\n\x1b[31m b\xff") == "a [31m b\N{REPLACEMENT CHARACTER}"
    assert excerpt(b"no " * 100, 6) == "no no…"
