"""Compressed responses that were not requested: decoded as they arrive, bounded, or rejected in one line."""

from __future__ import annotations

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
from servetop.core.interfaces.dialect import Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.content_coding import MAX_DECODED_BYTES, CodingError, Decoder, decoder_for
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.workload.stages.stage_run import Due

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


@pytest.mark.parametrize("coding", ["", "identity", "None", "utf-8", "UTF8", "identity, none", " "])
def test_names_that_are_no_coding_leave_the_body_as_it_is(coding: str) -> None:
    assert decoder_for(coding) is None


def test_the_coding_counts_among_names_that_are_none() -> None:
    decoder = decoder_for("identity, GZIP")
    assert decoder is not None
    assert decoder.decode(gzip.compress(b"one")) == b"one"
    with pytest.raises(CodingError, match="'gzip, br', which was not requested"):
        decoder_for("gzip, br")


@pytest.fixture(params=["raw", "httpx"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def played(server: Any, start: Callable[..., Any], coding: str, pieces: Sequence[bytes]) -> Any:
    async def compresses(request: Any) -> None:
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
        await request.raw(f"{head}Content-Encoding: {coding}\r\n\r\n".encode())
        for piece in pieces:
            await request.chunk(piece)
        await request.raw(b"0\r\n\r\n")

    server.script = compresses
    run = start(server.url, continuous_usage=False)
    run.begin(StageConfig(num_prompts=1))
    await run.finish()
    (record,) = run.records
    return record


def compressed_tokens() -> list[bytes]:
    """Return a gzip body in five pieces: four with a token each, and one with the end marker."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    pieces = [packer.compress(TOKEN) + packer.flush(zlib.Z_SYNC_FLUSH) for _ in range(4)]
    return [*pieces, packer.compress(b"data: [DONE]\n\n") + packer.flush()]


async def test_a_compressed_response_is_read(server: Any, start: Callable[..., Any]) -> None:
    record = await played(server, start, "gzip", compressed_tokens())
    assert (record.status, record.error, record.output_tokens) == (RequestStatus.OK, None, 4)


def test_each_token_has_the_arrival_time_of_its_own_piece() -> None:
    dialect = dialect_for("completions", model="m", continuous_usage=False)
    prepared = PreparedRequest(Prompt(text="x", input_tokens=3, output_tokens=4), b"{}")
    request = RequestState(1, Due(0, 0.0), prepared=prepared, dialect=dialect, limited=False)
    request.mark_sent(0.0)
    request.headers_received(200, 0.5, coding="gzip")
    for number, piece in enumerate(compressed_tokens(), start=1):
        request.body_received(piece, float(number))
    assert list(request.chunks.times()) == [1.0, 2.0, 3.0, 4.0]
    assert (request.status, request.done_at) == (RequestStatus.OK, 5.0)


async def test_an_unsupported_coding_is_an_error_in_one_line(server: Any, start: Callable[..., Any]) -> None:
    record = await played(server, start, "br", [b"\x8b\x01\x80"])
    assert record.status is RequestStatus.ERROR
    assert record.error == "HTTP 200: the server compresses its responses with 'br', which was not requested"
