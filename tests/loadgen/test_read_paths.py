"""The fast read paths give exactly the result of the full parser."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from httptools import HttpResponseParser
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.interfaces.dialect import Dialect, Prompt
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.engines.dialects.json_event import read_completion
from servetop.engines.dialects.stream_parser import EventStream
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.transport.http1 import Http1Connection
from servetop.workload.stages.stage_run import Due
from tests.loadgen.scripted_server import SSE_HEAD

DIALECT = dialect_for("completions", model="m", continuous_usage=False)
TEXTS = st.sampled_from([" a", " word", "", "\n", '"', "\\", "é", '", "x": "', "\\u12", " \t", "a" * 300])
USAGE = {"prompt_tokens": 3, "completion_tokens": 7}


def event(text: str, **more: object) -> bytes:
    content = {"id": "cmpl-1", "choices": [{"index": 0, "text": text, "finish_reason": None}], **more}
    return b"data: " + orjson.dumps(content) + b"\n\n"


regular = TEXTS.map(event)


def counted(number: int, text: str, *, rise: int = 1) -> bytes:
    """Return an event with usage, as of a server that sends it with each event."""
    total = 5 + number * rise
    usage = {"prompt_tokens": 5, "total_tokens": 5 + total, "completion_tokens": total}
    content = {"id": "cmpl-1", "choices": [{"index": 0, "text": text, "finish_reason": None}], "usage": usage}
    return b"data: " + orjson.dumps(content) + b"\n\n"


@st.composite
def counted_payloads(draw: st.DrawFn) -> list[bytes]:
    """Mostly one token per event; sometimes several, none, or an event without usage."""
    found, count = [], 0
    for text in draw(st.lists(TEXTS | st.just(" a"), max_size=60)):
        count += draw(st.sampled_from([1, 1, 1, 1, 1, 1, 2, 0, 7]))
        usual = draw(st.sampled_from([True, True, True, True, True, False]))
        found.append(counted(count, text) if usual else draw(others))
    return found


others = st.sampled_from(
    [
        event("", usage=USAGE),
        event(" two") + event(" of them"),
        b": a comment\n\n",
        b'data: {"error": {"message": "it broke"}}\n\n',
        b"data: {broken\n\n",
        b'data: {"id": "cmpl-1", "choices": [{"index": 0, "text": "\\',
        b"data: [DONE]\n\n",
    ]
)
payloads = st.lists(st.one_of(regular, regular, regular, regular, others), max_size=60)


class Inbox:
    """Handles reads like the transport."""

    def stamped(self, connection: Http1Connection, data: bytes, at: float) -> None:
        connection.parse(data, at)

    def flush(self, connection: Http1Connection) -> None:
        assert connection.request is not None
        connection.request.flush()

    def unstamped(self, connection: Http1Connection, data: bytes) -> None: ...


class Body:
    """Extracts the body of each read with the HTTP parser only."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)

    def of(self, read: bytes) -> bytes:
        self._pieces.clear()
        self._parser.feed_data(read)
        return b"".join(self._pieces)


def new_request(dialect: Dialect = DIALECT) -> RequestState:
    prompt = Prompt(text="x", input_tokens=1, output_tokens=9)
    return RequestState(0, Due(0, 0.0), prepared=PreparedRequest(prompt, b"{}"), dialect=dialect, limited=False)


def seen(made: RequestState) -> list[Any]:
    times, counts = made.chunks.times().tolist(), made.chunks.counts().tolist()
    usage = [made.output_tokens, made.prompt_tokens, made.cached_tokens]
    return [times, counts, made.status, made.error, made.first_token_at, made.completion_tokens, *usage]


@pytest.mark.parametrize("continuous", [False, True])
@given(payloads=payloads | counted_payloads(), joints=st.data())
def test_all_read_paths_give_the_same_result_as_the_full_parser(
    continuous: bool, payloads: list[bytes], joints: st.DataObject
) -> None:
    reads = [SSE_HEAD]
    for payload in payloads:
        chunk = b"%x\r\n%b\r\n" % (len(payload), payload)
        match joints.draw(st.sampled_from(["alone", "alone", "alone", "joined", "cut"])):
            case "joined" if len(reads) > 1:
                reads[-1] += chunk
            case "cut":
                cut = joints.draw(st.integers(1, len(chunk) - 1))
                reads += [chunk[:cut], chunk[cut:]]
            case _:
                reads.append(chunk)
    dialect = dialect_for("completions", model="m", continuous_usage=continuous)
    quick, exact = new_request(dialect), new_request(dialect)
    exact.parser = EventStream(read_completion, None, continuous=continuous, keep_texts=False)
    connection = Http1Connection(Inbox())
    connection.send(quick, b"", at=0.0)
    exact.headers_received(200, 0.01)
    framing = Body()
    for number, read in enumerate(reads, 1):
        connection.data_arrived(read, number / 100)
        if body := framing.of(read):
            exact.body_received(body, number / 100)
    quick.connection_lost("over", 99.0)
    exact.connection_lost("over", 99.0)
    assert seen(quick) == seen(exact)


def test_regular_events_are_deferred_and_flushed_together() -> None:
    made, connection = new_request(), Http1Connection(Inbox())
    connection.send(made, b"", at=0.0)
    connection.data_arrived(SSE_HEAD, 0.01)
    for number in range(13):
        payload = event(f" {number}")
        connection.data_arrived(b"%x\r\n%b\r\n" % (len(payload), payload), 1.0 + number)
    assert len(made.deferred) > 0
    made.flush()
    assert made.chunks.times().tolist() == [1.0 + number for number in range(13)]
    assert made.chunks.tokens == 13


def test_regular_events_with_usage_are_deferred_too() -> None:
    made = new_request(dialect_for("completions", model="m", continuous_usage=True))
    connection = Http1Connection(Inbox())
    connection.send(made, b"", at=0.0)
    connection.data_arrived(SSE_HEAD, 0.01)
    deferred = 0
    for number in range(1, 121):
        payload = counted(number, " a" * (number % 5 + 1))
        connection.data_arrived(b"%x\r\n%b\r\n" % (len(payload), payload), 1.0 + number)
        deferred += len(made.deferred) > 0
    made.flush()
    assert deferred > 100
    assert made.chunks.times().tolist() == [1.0 + number for number in range(1, 121)]
    assert (made.chunks.tokens, made.output_tokens, made.prompt_tokens) == (125, 125, 5)


def test_events_that_only_raise_the_count_are_flushed_together() -> None:
    """Part of a character, such as one byte of an emoji, decodes to no text."""
    made = new_request(dialect_for("completions", model="m", continuous_usage=True))
    connection = Http1Connection(Inbox())
    connection.send(made, b"", at=0.0)
    connection.data_arrived(SSE_HEAD, 0.01)
    for number in range(20):
        payload = counted(number, " a" if number % 2 == 0 else "", rise=1)
        connection.data_arrived(b"%x\r\n%b\r\n" % (len(payload), payload), 1.0 + number)
    middles = [middle for middle, _ in made.deferred]
    assert len(middles) > 5
    last = made.parser.match_frames(middles)
    assert last is not None
    assert last.output_tokens == 5 + 19


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, [1.0, 1.04, 1.04, 1.04, 1.04]),  # the earliest arrival time is unknown
        (0.9, [1.0, 1.01, 1.02, 1.03, 1.04]),  # the client was delayed: they arrived one after the other
        (1.025, [1.0, 1.025, 1.025, 1.03, 1.04]),
        (1.039, [1.0, 1.039, 1.039, 1.039, 1.04]),  # it had just looked: they came as one
    ],
)
def test_events_read_together_are_spread_back_to_the_previous_poll(since: float | None, expected: list[float]) -> None:
    made = new_request()
    made.headers_received(200, 0.9)
    made.body_received(event(" a"), 1.0)
    made.body_received(event(" b") + event(" c") + event(" d") + event(" e"), 1.04, since=since)
    made.body_received(event(" f") + b"data: [DONE]\n\n", 1.05, since=1.04)
    assert made.chunks.times().tolist() == pytest.approx([*expected, 1.05])
    assert made.done_at == 1.05
    doubts = made.chunks.take_uncertainties()
    assert (None if doubts is None else doubts.tolist()) == (
        None if since is None else pytest.approx([1.04 - max(since, 1.0)] * 4)
    )
    assert made.chunks.take_uncertainties() is None
