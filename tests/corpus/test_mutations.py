"""Damaged responses of the corpus: no exception, and no error that passes for a completion."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus.corpus import Case, load_cases, read

CASES = load_cases()
STREAMS = [case for case in CASES if case.is_event_stream]
CHATS = [case for case in STREAMS if case.endpoint != "responses"]
COMPLETE = [case for case in CHATS if case.outcome == "ok" and b"[DONE]" in case.body]
seeds = st.integers(0, 2**64)
COMMENTS = (
    b": ping\n\n",
    b"\n\n",
    b"data:\n\n",
    b"id: 3\n\n",
    b"retry: 10\n\n",
    b"event: ping\ndata: {}\n\n",
    b"data: ping\n\n",
)
ERRORS = (
    b'data: {"error":{"message":"overloaded"}}\n\n',
    b'data: {"error":"overloaded"}\n\n',
    b'data: {"code":503,"message":"overloaded"}\n\n',
    b'data: {"detail":"overloaded"}\n\n',
    b'data: {"object":"error","message":"overloaded"}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"x"}}],"error":{"message":"overloaded"}}\n\n',
    b'data: {"choices":[{"index":0,"text":"","delta":{},"finish_reason":"error","error":"overloaded"}]}\n\n',
    b"event: error\n: overloaded\n\n",
    b"event: error\ndata: overloaded\n\n",
    b'event: error\ndata: {"choices":[],"message":"overloaded"}\n\n',
    b'{"error":{"message":"overloaded"}}\n\n',
    b'{\n "error": {\n  "message": "overloaded"\n }\n}\n\n',
    b"<html><body>overloaded</body></html>\n\n",
    b'error: {"message":"overloaded"}\n\n',
    b"data: overloaded\n\n",
)


def cut(random: Random, body: bytes) -> bytes:
    return body[: random.randrange(len(body) + 1)]


def without_a_part(random: Random, body: bytes) -> bytes:
    low, high = sorted(random.randrange(len(body) + 1) for _ in range(2))
    return body[:low] + body[high:]


def with_a_line_twice(random: Random, body: bytes) -> bytes:
    lines = body.splitlines(keepends=True) or [b""]
    at = random.randrange(len(lines))
    return b"".join([*lines[: at + 1], *lines[at:]])


def with_lines_exchanged(random: Random, body: bytes) -> bytes:
    lines = body.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def with_other_bytes(random: Random, body: bytes) -> bytes:
    damaged = bytearray(body)
    for _ in range(random.randrange(1, 5)):
        if damaged:
            damaged[random.randrange(len(damaged))] = random.choice(b'\x00\r\n{}[]":, x\xff\xef')
    return bytes(damaged)


def with_two_in_one(random: Random, body: bytes) -> bytes:
    return cut(random, body) + random.choice(CASES).body


DAMAGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    cut, without_a_part, with_a_line_twice, with_lines_exchanged, with_other_bytes, with_two_in_one,
)  # fmt: skip


def split(random: Random, body: bytes) -> list[bytes]:
    edges = sorted(random.randrange(len(body) + 1) for _ in range(random.randrange(6)))
    return [body[low:high] for low, high in zip([0, *edges], [*edges, len(body)], strict=True)]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_response_has_one_outcome_however_it_arrives(damage: Callable[[Random, bytes], bytes]) -> None:
    @given(st.sampled_from(CASES), seeds)
    @settings(max_examples=150)
    def has_one(case: Case, seed: int) -> None:
        random = Random(seed)
        body = damage(random, case.body)
        reading = read(case, [body])
        record = reading.record
        assert (record.error is None) == (str(record.status) == "ok")
        assert "\n" not in (record.error or "")
        assert str(record.status) != "ok" or reading.content or reading.reasoning or b"usage" in body
        assert read(case, split(random, body)).result == reading.result

    has_one()


def test_an_error_anywhere_before_the_end_is_no_completion() -> None:
    @given(st.sampled_from(COMPLETE), st.sampled_from(ERRORS), seeds)
    @settings(max_examples=400)
    def is_none(case: Case, error: bytes, seed: int) -> None:
        random, blocks = Random(seed), case.blocks
        done = next(number for number, block in enumerate(blocks) if b"[DONE]" in block.upper())
        at = random.randrange(done + 1)
        body = b"".join([*blocks[:at], error, *blocks[at:]])
        record = read(case, split(random, body)).record
        assert str(record.status) == "error"
        assert "overloaded" in (record.error or "")

    is_none()


def test_line_ends_comments_and_keep_alives_change_nothing() -> None:
    @given(st.sampled_from(CHATS), st.sampled_from([b"\n", b"\r\n", b"\r"]), seeds)
    @settings(max_examples=300)
    def same(case: Case, line_end: bytes, seed: int) -> None:
        random, blocks = Random(seed), case.blocks
        body = b""
        for block in blocks:
            is_whole = block.endswith((b"\n\n", b"\r\r", b"\r\n\r\n"))
            body += block + (random.choice(COMMENTS) if is_whole and random.random() < 0.5 else b"")
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", line_end)
        assert read(case, split(random, body)).result == read(case, [case.body]).result

    same()
