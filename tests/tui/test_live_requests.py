"""Rows of requests in flight, from the senders' reports."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.tui.state.live_requests import live_rows
from servetop.tui.state.request_phases import DECODE, STALL, TO_FIRST_TOKEN

DECODING = RequestInFlight(
    at=14.0, id=7, stage=0, due=10.0, sent=11.0, first_token_at=12.0, last_token_at=13.9, prompt_tokens=100,
    output_tokens=20,
)  # fmt: skip
WAITING = replace(DECODING, id=8, first_token_at=None, last_token_at=None, output_tokens=0)


def test_a_row_shows_what_is_known_of_a_request() -> None:
    (row,) = live_rows([DECODING], 14.5)
    assert (row.id, row.due, row.ttft, row.output_tokens, row.status) == (7, 10.0, 1.0, 20, "… decode")
    assert row.itl == pytest.approx(1.9 / 19)
    assert math.isnan(row.e2el)
    assert math.isnan(row.itl_max), "only mean gaps are reported"
    assert row.spans[-1].phase is DECODE
    assert row.spans[-1].end == 14.0, "what happened after the report is not known"


def test_a_request_that_gets_no_more_tokens_is_stalled() -> None:
    (row,) = live_rows([replace(DECODING, last_token_at=12.5)], 14.5)
    assert [(span.start, span.end) for span in row.spans if span.phase is STALL] == [(12.5, 14.0)]


def test_a_request_without_a_token_waits() -> None:
    (row,) = live_rows([WAITING], 20.0)
    assert (row.status, row.output_tokens, row.spans[-1].phase) == ("… waiting", 0, TO_FIRST_TOKEN)
    assert math.isnan(row.ttft)


def test_requests_that_have_ended_or_were_sent_later_are_left_out() -> None:
    later = replace(WAITING, id=9, sent=13.0)
    unsent = replace(WAITING, id=10, sent=None)
    assert [row.id for row in live_rows([DECODING, WAITING, later, unsent], 12.5, ended={8})] == [7]


def test_the_tokens_of_a_long_answer_are_all_counted() -> None:
    (row,) = live_rows([replace(DECODING, output_tokens=1001)], 14.0)
    assert row.output_tokens == 1001
