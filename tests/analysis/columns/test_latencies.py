"""TTFT, E2EL and TPOT of several requests."""

from __future__ import annotations

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_per_output_token, times_to_first_token

SENT = np.array([1.0, 2.0, 3.0])
FIRST = np.array([1.5, 2.25, np.nan])
DONE = np.array([3.5, 2.25, np.nan])


def test_they_begin_when_the_request_was_sent_or_due() -> None:
    assert times_to_first_token(SENT, FIRST)[:2].tolist() == [0.5, 0.25]
    assert times_to_first_token(SENT - 0.5, FIRST)[:2].tolist() == [1.0, 0.75]
    assert end_to_end_latencies(SENT, DONE)[:2].tolist() == [2.5, 0.25]


def test_a_request_without_a_first_token_has_none() -> None:
    assert np.isnan(times_to_first_token(SENT, FIRST)[2])
    assert np.isnan(end_to_end_latencies(SENT, DONE)[2])


def test_tpot_divides_by_the_tokens_after_those_of_the_first_chunk() -> None:
    ttft, e2el = times_to_first_token(SENT, FIRST), end_to_end_latencies(SENT, DONE)
    found = times_per_output_token(ttft, e2el, np.array([4.0, 0.0, 4.0]))
    assert found[0] == 0.5
    assert np.isnan(found[1:]).all()  # a single chunk; no first token


def test_tpot_needs_the_tokens_of_each_chunk() -> None:
    ttft, e2el = times_to_first_token(SENT, FIRST), end_to_end_latencies(SENT, DONE)
    assert np.isnan(times_per_output_token(ttft, e2el, np.full(3, 4.0), known=np.zeros(3, dtype=np.bool_))).all()
