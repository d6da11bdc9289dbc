"""When a response is complete: with its end marker, or with a finish reason and a clean end; never without a token."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.events import RequestRecord, RequestStatus
from servetop.core.interfaces.dialect import Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.workload.stages.stage_run import Due

NO_TOKEN = (RequestStatus.ERROR, "the response ended without a token")
NO_END = (RequestStatus.TRUNCATED, "the stream ended without its end marker")
OK = (RequestStatus.OK, None)
DONE = b"data: [DONE]\n\n"


def event(text: str = "", *, stop: str | None = None, usage: int | None = None, index: int = 0) -> bytes:
    content = {
        "choices": [{"index": index, "text": text, "finish_reason": stop}],
        "usage": None if usage is None else {"prompt_tokens": 3, "completion_tokens": usage},
    }
    return b"data: " + orjson.dumps(content) + b"\n\n"


def counts(usage: int) -> bytes:
    return b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d}}\n\n' % usage


def record_of(pieces: Sequence[bytes], *, choices: int = 1, streamed: bool = True) -> RequestRecord:
    """Return the record of a request whose response ends regularly."""
    prepared = PreparedRequest(
        Prompt(text="x", input_tokens=3, output_tokens=9), b"{}", choices=choices, streamed=streamed
    )
    dialect = dialect_for("completions", model="m", continuous_usage=False)
    request = RequestState(1, Due(0, 0.0), prepared=prepared, dialect=dialect, limited=False)
    request.mark_sent(0.0)
    request.headers_received(200, 0.1)
    for number, piece in enumerate(pieces, 1):
        request.body_received(piece, 0.1 + number / 1000)
    request.body_complete(9.0)
    return build_record(request, worker=0)


def outcome(record: RequestRecord) -> tuple[RequestStatus, str | None]:
    """Return the status and the error without what it quotes of the response."""
    return record.status, None if record.error is None else record.error.partition("; it starts")[0]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (DONE, NO_TOKEN),
        (event() + event() + DONE, NO_TOKEN),
        (event(stop="stop") + DONE, NO_TOKEN),
        (counts(0) + DONE, NO_TOKEN),
        (event(stop="stop") + counts(0) + DONE, OK),
        (event(stop="stop", usage=1) + DONE, OK),
        (event("a") + DONE, OK),
        (b"", NO_END),
        (event("a"), NO_END),
        (event("a") + counts(1), NO_END),
        (event("a") + event(stop="length"), OK),
        (event("a", stop="length") + counts(1), OK),
        (event("a") + event(stop="length")[:-9], NO_END),
    ],
)
def test_a_response_is_complete_with_an_end_marker_or_finish_reason_and_a_token(
    body: bytes, expected: tuple[RequestStatus, str | None]
) -> None:
    assert outcome(record_of([body])) == expected


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            b'{"tok":"Hi"}\n{"tok":"you"}\n',
            """the stream ended without its end marker; it starts with '{"tok":"Hi"} {"tok""",
        ),
        (b"event: token\ndata: <b>Hi</b>\n\n", "end marker; it starts with 'event: token data: <b>Hi</b>'"),
        (b'data: {"tok":"Hi"}\n\n' + DONE, """without a token; it starts with 'data: {"tok":"Hi"} data: [DONE]'"""),
        (b'0:"Hi"\n', """it starts with '0:"Hi"'"""),
        (b"\x00\x00\x00\x00\x04\x0a\x02Hi", r"no event stream: binary data that starts with '\x00\x00\x00\x00\x04\n"),
    ],
)
def test_a_stream_of_another_protocol_is_quoted(body: bytes, error: str) -> None:
    pieces = [body[at : at + 3] for at in range(0, len(body), 3)]
    for record in (record_of([body]), record_of(pieces)):
        assert record.status is not RequestStatus.OK
        assert error in (record.error or "")


def test_half_a_word_at_the_end_of_a_quote_is_left_out() -> None:
    secret = "k" * 40
    error = record_of([b'data: {"a": "%s"}\n\ndata: {"b": "c", "key": "%s"}' % (b"a" * 50, secret.encode())]).error
    assert error is not None
    assert "kk" not in error
    assert error.endswith('"key": "…\'')


def test_a_timeout_without_a_token_quotes_what_came() -> None:
    prepared = PreparedRequest(Prompt(text="x", input_tokens=3, output_tokens=9), b"{}")
    dialect = dialect_for("completions", model="m", continuous_usage=False)
    request = RequestState(1, Due(0, 0.0), prepared=prepared, dialect=dialect, limited=False)
    request.mark_sent(0.0)
    request.headers_received(200, 0.1)
    request.body_received(b'data: {"tok":"Hi"}\n\n', 0.2)
    request.abandon(RequestStatus.TIMEOUT, 5.0, reason="no complete response within 5 s")
    assert request.error == """no complete response within 5 s; it starts with 'data: {"tok":"Hi"}'"""


def test_several_choices_are_complete_when_each_has_a_finish_reason() -> None:
    one = event("a") + event("b", index=1) + event(stop="length")
    assert outcome(record_of([one], choices=2)) == (NO_END[0], f"{NO_END[1]}, after 1 of 2 completions")
    assert outcome(record_of([one, event(stop="stop", index=1)], choices=2)) == OK


def test_an_empty_response_without_streaming_needs_usage() -> None:
    empty = {"choices": [{"text": "", "finish_reason": "stop"}]}
    counted = {**empty, "usage": {"prompt_tokens": 3, "completion_tokens": 0}}
    assert outcome(record_of([orjson.dumps(empty)], streamed=False)) == NO_TOKEN
    assert outcome(record_of([orjson.dumps(counted)], streamed=False)) == OK


LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(LINE_ENDS, st.lists(st.integers(0, 1000), max_size=12))
def test_line_ends_and_splits_do_not_change_the_result(ending: bytes, slots: Sequence[int]) -> None:
    body = b": hello\n\n" + b"".join(event(f" {word}") for word in "abc") + event(stop="stop") + counts(3) + DONE
    body = body.replace(b"\n", ending)
    edges = [0, *sorted(place % (len(body) + 1) for place in slots), len(body)]
    record = record_of([body[low:high] for low, high in itertools.pairwise(edges)])
    assert outcome(record) == OK
    assert (record.output_tokens, record.chunk_tokens.tolist()) == (3, [1, 1, 1])
