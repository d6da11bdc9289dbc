"""The log of a response's chunks: exact times, little memory."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.loadgen.request.chunk_log import ChunkLog

chunks = st.lists(st.tuples(st.floats(0, 3000), st.integers(1, 300)), max_size=60)


@given(first=st.floats(0, 1e5), each=chunks)
def test_times_are_exact_to_the_microsecond_and_counts_are_exact(first: float, each: list[tuple[float, int]]) -> None:
    log, instants, at = ChunkLog(), [], first
    for gap, tokens in each:
        at += gap / 60
        instants.append(at)
        log.add(at, tokens)
    assert log.times() == pytest.approx(instants, abs=0.6e-6)
    assert log.counts().tolist() == [tokens for _, tokens in each]
    assert [log.tokens_at(position) for position in range(len(log))] == log.counts().tolist()
    assert log.tokens == sum(tokens for _, tokens in each)
    gaps_us, counts = log.since(1)
    assert [gap / 1e6 for gap in gaps_us] == pytest.approx(
        [after - before for before, after in itertools.pairwise(instants)], abs=1.1e-6
    )
    assert list(counts or [1] * len(gaps_us)) == [tokens for _, tokens in each[1:]]


@given(first=st.floats(0, 1e5), gaps=st.lists(st.floats(0, 9000), min_size=1, max_size=60), data=st.data())
def test_extending_equals_adding_one_by_one(first: float, gaps: list[float], data: st.DataObject) -> None:
    instants = list(itertools.accumulate(gaps, initial=first))
    singly, at_once = ChunkLog(), ChunkLog()
    for at in instants:
        singly.add(at, 1)
    tokens = data.draw(st.integers(1, 2))
    at_once.add(instants[0], tokens)
    cut = data.draw(st.integers(1, len(instants)))
    for part in (instants[1:cut], instants[cut:]):
        if part:
            at_once.extend(part)
    assert at_once.times().tolist() == singly.times().tolist()
    assert at_once.counts().tolist() == [tokens] + [1] * len(gaps)
    assert at_once.tokens == tokens + len(gaps)


def test_the_first_time_is_exact_and_an_empty_log_is_empty() -> None:
    log = ChunkLog()
    assert (len(log), log.times().size, log.counts().size) == (0, 0, 0)
    log.add(1234.567890123, 1)
    assert log.times().tolist() == [1234.567890123]
    assert list(log.since(0)[0]) == [0]


def test_a_gap_above_71_minutes_is_stored_as_71_minutes() -> None:
    log = ChunkLog()
    log.add(0.0, 1)
    log.add(5000.0, 1)
    assert log.times().tolist() == pytest.approx([0.0, 4294.967295])


def test_a_chunk_of_one_token_takes_four_bytes() -> None:
    log = ChunkLog()
    for number in range(10_000):
        log.add(number * 0.01, 1)
    kept = sys.getsizeof(log._gaps_us) + sys.getsizeof(log._counts)
    assert kept <= 10_000 * 4 * 1.125 + 200, "with the room that an array grows ahead"


def test_a_very_long_response_is_stored_like_a_short_one() -> None:
    log, instants = ChunkLog(), [number * 0.01 for number in range(10_001)]
    log.add(instants[0], 1)
    for first in range(1, 10_001, 10):
        log.extend(instants[first : first + 10])
    assert log.times() == pytest.approx(instants, abs=0.6e-6)
    assert len(log) == log.tokens == 10_001
