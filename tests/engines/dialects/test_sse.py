"""SseSplitter gives the same events however the bytes arrive."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.engines.dialects.sse import MAX_EVENT_BYTES, SseEvent, SseSplitter


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b": keep-alive\n\ndata: a\n\n", [b"a"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b"data: a\n\ndata: unfinished\n", [b"a"]),
        (b"data: a\n\n: comment\ndata: b\n\n", [b"a", b"b"]),
    ],
)
def test_what_counts_as_an_event(stream: bytes, events: list[bytes]) -> None:
    assert SseSplitter().feed(stream) == [SseEvent(event) for event in events]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"event: token\ndata: a\n\n", [SseEvent(b"a", b"token")]),
        (b"data: a\nevent: token\n\ndata: b\n\n", [SseEvent(b"a", b"token"), SseEvent(b"b")]),
        (b"event: ping\n\n", []),
        (b"data:\n\ndata: \n\ndata\n\n", []),
        (b"event: error\n: busy\n\n", [SseEvent(b"", b"error", b"busy")]),
        (b"event: error\ndata: a\n\n", [SseEvent(b"a", b"error")]),
        (b'error: {"code":5}\n\n', [SseEvent(b'{"code":5}', b"error")]),
        (b'{"a":1}\n{"b":2}\n', [SseEvent(b'{"a":1}'), SseEvent(b'{"b":2}')]),
        (b'{\n "a":1\n}\ndata: b\n\n', [SseEvent(b'{\n "a":1\n}'), SseEvent(b"b")]),
        (b"<p>\nno\n\n", [SseEvent(b"<p>\nno")]),
        (b"Internal Server Error\n\n", [SseEvent(b"", b"", b"Internal Server Error")]),
        (b"x-field: a\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(b"a")]),
    ],
)
def test_what_servers_send_beside_data(stream: bytes, events: list[SseEvent]) -> None:
    assert SseSplitter().feed(stream) == events


@pytest.mark.parametrize(
    ("rest", "events"),
    [
        (b"data: a", [SseEvent(b"a")]),
        (b"data: a\n", [SseEvent(b"a")]),
        (b'{"a":', [SseEvent(b'{"a":')]),
        (b"dat", []),
        (b": note", []),
        (b"busy", [SseEvent(b"", b"", b"busy")]),
    ],
)
def test_the_end_of_the_body_ends_an_event(rest: bytes, events: list[SseEvent]) -> None:
    splitter = SseSplitter()
    assert splitter.feed(rest) == []
    assert splitter.close() == events


lines = st.sampled_from(
    [
        b"data: x",
        b"data:y",
        b"data: ",
        b": note",
        b"id: 1",
        b"",
        b"",
        b"junk",
        b"event: error",
        b"{",
        b"}",
        b'{"a":1}',
        b"<p>",
    ]
)
streams = st.lists(st.tuples(lines, st.sampled_from([b"\n", b"\r\n"])), max_size=30).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)


@given(streams, st.lists(st.integers(0, 200), max_size=8))
def test_any_split_gives_the_events_of_byte_by_byte(stream: bytes, cuts: list[int]) -> None:
    slowly, pieces = SseSplitter(), SseSplitter()
    expected = [event for byte in stream for event in slowly.feed(bytes([byte]))]
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    found = [event for low, high in itertools.pairwise(edges) for event in pieces.feed(stream[low:high])]
    assert found == expected


def test_an_endless_event_is_dropped_and_nothing_more_is_kept() -> None:
    splitter = SseSplitter()
    piece = b"data: " + b"x" * 65_536
    for _ in range(MAX_EVENT_BYTES // len(piece) + 2):
        assert splitter.feed(piece) == []
    assert splitter.overflowed
    assert splitter.feed(b"\n\ndata: a\n\n") == []


def test_an_endless_event_of_short_data_lines_overflows_as_soon_as_one_of_long_ones() -> None:
    splitter, fed, piece = SseSplitter(), 0, b"data:\n" * 1000
    while not splitter.overflowed:
        splitter.feed(piece)
        fed += len(piece)
    assert MAX_EVENT_BYTES < fed <= MAX_EVENT_BYTES + len(piece)


def test_an_endless_event_of_many_data_lines_overflows_too() -> None:
    splitter = SseSplitter()
    for _ in range(MAX_EVENT_BYTES // 1000 + 2):
        splitter.feed(b"data: " + b"x" * 1000 + b"\n")
    assert splitter.overflowed
