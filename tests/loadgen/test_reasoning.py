"""Reasoning tokens count as tokens; the time of the first output token is separate."""

import dataclasses
import json

import pytest

from servetop.core.interfaces.dialect import Prompt
from servetop.core.tick import LoadGauges
from servetop.engines.dialects.dialect_registry import dialect_for
from servetop.loadgen.request.record import build_record
from servetop.loadgen.request.request_state import PreparedRequest, RequestState
from servetop.loadgen.sender.tick_builder import TickBuilder
from servetop.workload.stages.stage_run import Due

PROMPT = Prompt(text="", token_ids=(11, 12), input_tokens=2, output_tokens=9)


def delta(**content: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": content}]}).encode() + b"\n\n"


def usage(**details: int) -> bytes:
    counts = {"prompt_tokens": 2, "completion_tokens": 4, "completion_tokens_details": details or None}
    return b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n"


def chat(*events: bytes) -> RequestState:
    """Return a request that received an event every 10 ms from second 1, and then the end marker."""
    dialect = dialect_for("chat", model="m", continuous_usage=False)
    made = RequestState(0, Due(0, 1.0), prepared=PreparedRequest(PROMPT, b"{}"), dialect=dialect, limited=False)
    made.mark_sent(1.0)
    made.headers_received(200, 1.0)
    for number, event in enumerate((*events, b"data: [DONE]\n\n"), start=1):
        made.body_received(event, 1.0 + number / 100)
    return made


@pytest.mark.parametrize(
    ("events", "first_token_at", "first_output_at", "reasoning_tokens"),
    [
        ([delta(reasoning="a"), delta(reasoning="b"), delta(content="c"), usage()], 1.01, 1.03, 2),
        ([delta(reasoning_content="a"), delta(content="b"), usage(reasoning_tokens=3)], 1.01, 1.02, 3),
        ([delta(reasoning="a"), delta(content="b"), usage(reasoning_tokens=0)], 1.01, 1.02, 1),
        ([delta(reasoning="a"), delta(reasoning="b"), usage()], 1.01, None, 2),
        ([delta(content="a"), delta(content="b"), usage(reasoning_tokens=2)], 1.01, 1.01, 2),
        ([delta(content="a"), delta(content="b"), usage(reasoning_tokens=0)], 1.01, None, None),
        ([delta(content="a"), delta(reasoning="b"), delta(content="c")], 1.01, 1.03, 1),
    ],
    ids=["separate", "the server counts", "a count of 0 is ignored", "no answer", "hidden", "none", "answer first"],
)
def test_the_record_of_a_completion_with_reasoning(
    events: list[bytes], first_token_at: float, first_output_at: float | None, reasoning_tokens: int | None
) -> None:
    record = build_record(chat(*events), worker=0)
    assert record.first_token_at == first_token_at
    assert record.first_output_at == first_output_at
    assert record.reasoning_tokens == reasoning_tokens


def counted(output: int, **details: int) -> bytes:
    counts = {"prompt_tokens": 2, "completion_tokens": output, "completion_tokens_details": details}
    return b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("texts", "output", "reasoning", "sizes", "tpot"),
    [
        (["Par", "is"], 482, 480, [481, 1], 0.01),
        ([" a", " bc", " d", " efg"], 484, 480, [481, 1, 1, 1], 0.01),
        ([" abcd"] * 12, 492, 480, [481, *[1] * 11], 0.01),
        ([" tok tok tok tok"] * 12, 58, 10, [14, *[4] * 11], 0.0025),
        (["Par", "is"], 482, 400, [1, 1], None),  # 80 more tokens are not accounted for
        (["<think>", "Hm", "</think>", "Yes"], 4, 3, [1] * 4, 0.01),  # sent as content
        (["<think>", "Hm", "</think>", "Yes"], 9, 8, [1] * 4, None),
    ],
)
def test_reasoning_that_is_counted_and_not_sent_belongs_to_the_first_chunk(
    texts: list[str], output: int, reasoning: int, sizes: list[int], tpot: float | None
) -> None:
    record = build_record(
        chat(*(delta(content=text) for text in texts), counted(output, reasoning_tokens=reasoning)), worker=0
    )
    assert record.chunk_tokens.tolist() == sizes
    record = dataclasses.replace(record, done_at=float(record.chunk_times[-1]))
    assert record.tpot == (None if tpot is None else pytest.approx(tpot, rel=1e-3))


def test_ticks_have_the_time_to_first_output_token_once_a_request_has_reasoning() -> None:
    builder = TickBuilder()
    plain, thinking = chat(delta(content="a")), chat(delta(reasoning="a"), delta(reasoning="b"), delta(content="c"))
    for request in (plain, thinking, plain):
        builder.add_ended(request, build_record(request, worker=0))
    ttfot = builder.build(0, gauges=LoadGauges(), cpu_seconds=0.0).ttfot
    assert ttfot.count == 2
    assert ttfot.total == pytest.approx(0.03 + 0.01)
