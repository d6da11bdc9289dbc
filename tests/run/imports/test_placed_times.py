"""Requests without times of sending are placed so that a run lasts as long as its tool says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.run.imports.placed_times import (
    closed_loop_starts,
    even_chunks,
    even_starts,
    last_end,
    wave_starts,
)

LATENCIES = st.lists(st.floats(0.001, 50), min_size=1, max_size=40)


def test_a_closed_loop_sends_when_a_request_ends() -> None:
    assert closed_loop_starts([3.0, 1.0, 1.0, 2.0], 2) == [0.0, 0.0, 1.0, 2.0]
    assert closed_loop_starts([3.0, 1.0], None) == [0.0, 0.0]


@given(LATENCIES, st.floats(0.1, 100))
def test_even_starts_end_with_the_run(latencies: list[float], duration: float) -> None:
    starts = even_starts(latencies, duration)
    assert starts == sorted(starts)
    if len(latencies) > 1 and starts[1] > 0:
        assert last_end(starts[1:], latencies[1:]) == pytest.approx(duration)


@given(LATENCIES, st.integers(1, 5))
def test_waves_fill_the_duration_with_equal_pauses(latencies: list[float], concurrency: int) -> None:
    whole = sum(max(latencies[at : at + concurrency]) for at in range(0, len(latencies), concurrency))
    waves = -(-len(latencies) // concurrency)
    starts = wave_starts(latencies, concurrency, whole + waves)
    assert starts is not None
    assert last_end(starts, latencies) <= whole + waves - 1 + 1e-9
    assert len(set(starts)) == waves
    assert wave_starts(latencies, concurrency, whole * 0.9) is None


def test_only_the_first_and_the_last_token_are_known() -> None:
    assert even_chunks(1.0, 2.0, 3).tolist() == [1.0, 1.5, 2.0]
    assert even_chunks(1.0, 2.0, 1).tolist() == [1.0]
    assert even_chunks(1.0, 0.9, 2).tolist() == [1.0, 1.0]
