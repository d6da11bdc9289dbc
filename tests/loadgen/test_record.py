"""Token counts: their source, the tokens of each chunk, and disputed counts."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest

from servetop.core.events import RequestRecord, RequestStatus, TokenSource
from servetop.core.interfaces.dialect import Prompt
from servetop.core.tick import ClientTick, LoadGauges
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.workload.stages.stage_run import Due


def event(text: str) -> bytes:
    return (
        b"data: " + orjson.dumps({"id": "a", "choices": [{"index": 0, "text": text, "finish_reason": None}]}) + b"\n\n"
    )


def usage(tokens: int) -> bytes:
    return b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d}}\n\n' % tokens


def played(
    texts: Sequence[str], reported: int | None, *, max_tokens: int = 0, builder: TickBuilder | None = None
) -> RequestRecord:
    """Return the record of a request with an event every 28 ms, and usage at the end if given."""
    prompt = Prompt(text="x", input_tokens=3, output_tokens=9, counted=True)
    dialect = dialect_for("completions", model="m", continuous_usage=False)
    prepared = PreparedRequest(prompt, b"{}", max_tokens=max_tokens)
    request = RequestState(1, Due(0, 0.0), prepared=prepared, dialect=dialect, limited=False)
    request.mark_sent(0.0)
    request.headers_received(200, 0.01)
    for number, text in enumerate(texts, 1):
        request.body_received(event(text), number * 0.028)
    at = len(texts) * 0.028
    request.body_received((b"" if reported is None else usage(reported)) + b"data: [DONE]\n\n", at)
    builder = builder or TickBuilder()
    builder.add_chunks(request)
    record = build_record(request, worker=0)
    builder.add_ended(request, record)
    assert record.status is RequestStatus.OK
    return record


def tick(builder: TickBuilder) -> ClientTick:
    return builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0)


@pytest.mark.parametrize(
    ("texts", "reported", "sizes"),
    [
        ([" tok tok tok tok"] * 12, 48, [4] * 12),
        ([" tok tok tok tok"] * 11 + [" tok tok"], 46, [4] * 11 + [2]),
        ([" tok tok tok tok"] * 5, 20, [1] * 5),  # too few events: a coincidence
        ([" tok tok tok tok"] * 11 + ["!"], 48, [1] * 12),  # no four tokens in one byte
        ([" tok tok tok tok"] * 11 + [" and all that was held back"], 48, [1] * 12),
        ([" tok"] * 12, 492, [1] * 12),  # 480 were not sent, whatever they were
        ([" a longer text, in one event"], 9, [9]),
        ([" a"] * 5, 5, [1] * 5),
        ([" a"] * 5, 6, [1] * 5),  # the sixth is the end of text
        ([" a", " tok tok tok", " a", " tok tok tok"], 8, [1] * 4),  # two each, or one and three: unknown
        ([" tok tok", " tok", " tok tok"], 5, [1] * 3),
        ([" a"] * 10, 25, [1] * 10),  # no number of tokens for each adds up
    ],
)
def test_the_final_count_is_divided_among_chunks_that_are_provably_uniform(
    texts: list[str], reported: int, sizes: list[int]
) -> None:
    record = played(texts, reported)
    assert (record.output_tokens, record.chunk_tokens.tolist()) == (reported, sizes)


def test_the_time_per_token_does_not_count_the_first_chunks_tokens() -> None:
    record = played([" tok tok tok tok"] * 12, 48)
    assert record.tpot == pytest.approx(0.028 / 4)
    assert played([" tok"] * 5, 5).tpot == pytest.approx(0.028)
    assert played([" all of it"], 9).tpot is None


def test_the_time_per_token_is_unknown_if_the_tokens_of_the_chunks_are() -> None:
    assert played([" a", " tok tok tok", " a"], 9).tpot is None
    assert played(["Par", "is"], 482).tpot is None


def test_ticks_have_no_time_per_token_of_chunks_of_unknown_size() -> None:
    builder = TickBuilder()
    played([" a", " tok tok tok", " a"], 9, builder=builder)
    assert tick(builder).tpot.count == 0


def test_ticks_have_no_gaps_of_unknown_size_if_many_requests_have_such_chunks() -> None:
    builder = TickBuilder()
    played([" a", " tok tok tok"] * 10, 40, builder=builder)
    played([" a"] * 9, 9, builder=builder)
    tick(builder)
    played([" a", " tok tok tok"] * 10, 40, builder=builder)
    assert tick(builder).itl.count == 0


def test_ticks_take_the_tokens_per_chunk_from_a_request_that_ended() -> None:
    builder = TickBuilder()
    played([" tok tok tok tok"] * 50, 200, builder=builder)
    first = tick(builder)
    played([" tok tok tok tok"] * 50, 200, builder=builder)
    second = tick(builder)
    assert (first.output_tokens, second.output_tokens) == (200, 200)
    assert first.itl.percentile(50) == second.itl.percentile(50)
    assert second.itl.percentile(50) == pytest.approx(0.007, rel=0.01)
    played([" a", " tok tok tok"] * 10, 40, builder=builder)
    tick(builder)
    played([" a", " tok tok tok"] * 10, 40, builder=builder)
    assert tick(builder).itl.count == 0


def test_gaps_before_events_of_unknown_size_wait_for_the_first_request_that_ends() -> None:
    builder = TickBuilder()
    dialect = dialect_for("completions", model="m", continuous_usage=False)
    prepared = PreparedRequest(Prompt(text="x", input_tokens=3, output_tokens=9, counted=True), b"{}")
    going_on = RequestState(0, Due(0, 0.0), prepared=prepared, dialect=dialect, limited=False)
    going_on.mark_sent(0.0)
    going_on.headers_received(200, 0.01)
    for number in range(1, 11):
        going_on.body_received(event(" tok tok tok tok"), number * 0.028)
    builder.add_chunks(going_on)
    before = tick(builder)
    assert (before.chunks, before.itl.count) == (10, 0)
    played([" tok tok tok tok"] * 50, 200, builder=builder)
    after = tick(builder).itl
    assert after.count == 4 * (9 + 49)
    assert after.percentile(99) == pytest.approx(0.007, rel=0.01)


@pytest.mark.parametrize(
    ("events", "reported", "max_tokens", "source"),
    [
        (40, 40, 40, TokenSource.USAGE),
        (40, 47, 0, TokenSource.USAGE),
        (40, 47, 40, TokenSource.DISPUTED),
        (40, 33, 40, TokenSource.DISPUTED),
        (40, 39, 40, TokenSource.USAGE),
        (40, None, 40, TokenSource.CHUNKS),
    ],
)
def test_a_count_that_the_stream_or_the_limit_contradicts_is_disputed(
    events: int, reported: int | None, max_tokens: int, source: TokenSource
) -> None:
    record = played([" a"] * events, reported, max_tokens=max_tokens)
    assert record.token_source is source
    assert record.output_tokens == (events if reported is None else reported)
