"""Compressed responses that were not requested: decoded as they arrive, bounded, or rejected in one line."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.config import StageConfig
from servetop.core.events import RequestStatus
from servetop.loadgen.request.content_coding import MAX_DECODED_BYTES, CodingError, Decoder, decoder_for

TOKEN = b'data: {"choices": [{"index": 0, "text": " a"}]}\n\n'
BODY = TOKEN * 9 + b"data: [DONE]\n\n"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@given(
    st.sampled_from([("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)]),
    st.binary(max_size=3000),
    st.lists(st.integers(0, 4000), max_size=8),
)
def test_a_body_split_anywhere_decodes_to_the_original(
    coding: tuple[str, Callable[[bytes], bytes]], body: bytes, slots: Sequence[int]
) -> None:
    name, pack = coding
    packed = pack(body)
    edges = [0, *sorted(place % (len(packed) + 1) for place in slots), len(packed)]
    decoder = Decoder(name)
    assert b"".join(decoder.decode(packed[low:high]) for low, high in itertools.pairwise(edges)) == body


def test_several_gzip_members_are_one_body() -> None:
    assert Decoder("gzip").decode(gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_a_compression_bomb_and_an_invalid_body_are_rejected() -> None:
    with pytest.raises(CodingError, match="more than 4 MiB"):
        Decoder("gzip").decode(gzip.compress(b"\0" * (MAX_DECODED_BYTES + 1)))
    with pytest.raises(CodingError, match="not the gzip that its header declares"):
        Decoder("gzip").decode(b"data: plain")
    with pytest.raises(CodingError, match="'br', which was not requested"):
        decoder_for("br")
    assert decoder_for("identity") is decoder_for("") is None


@pytest.fixture(params=["raw", "httpx"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def played(server: Any, start: Callable[..., Any], coding: str, pieces: Sequence[bytes]) -> Any:
    async def compresses(request: Any) -> None:
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
        await request.raw(f"{head}Content-Encoding: {coding}\r\n\r\n".encode())
        for piece in pieces:
            await request.chunk(piece)
            await asyncio.sleep(0.01)
        await request.raw(b"0\r\n\r\n")

    server.script = compresses
    run = start(server.url, continuous_usage=False)
    run.begin(StageConfig(num_prompts=1))
    await run.finish()
    (record,) = run.records
    return record


async def test_each_token_has_the_arrival_time_of_its_own_piece(server: Any, start: Callable[..., Any]) -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    flush = zlib.Z_SYNC_FLUSH
    pieces = [packer.compress(TOKEN) + packer.flush(flush) for _ in range(4)]
    pieces.append(packer.compress(b"data: [DONE]\n\n") + packer.flush())
    record = await played(server, start, "gzip", pieces)
    assert (record.status, record.error, record.output_tokens) == (RequestStatus.OK, None, 4)
    assert record.chunk_times[-1] - record.chunk_times[0] >= 0.029


async def test_an_unsupported_coding_is_an_error_in_one_line(server: Any, start: Callable[..., Any]) -> None:
    record = await played(server, start, "br", [b"\x8b\x01\x80"])
    assert record.status is RequestStatus.ERROR
    assert record.error == "HTTP 200: the server compresses its responses with 'br', which was not requested"
