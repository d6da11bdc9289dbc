"""Slots of a batch: no two requests at once, and each stays in its own."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from servetop.tui.film.slots import Interval, assign_slots

TIMES = st.floats(0, 60, allow_nan=False)
INTERVALS = st.lists(st.tuples(TIMES, st.floats(0, 20)), max_size=40).map(
    lambda pairs: [(number, start, start + length) for number, (start, length) in enumerate(pairs)]
)


def overlapping(intervals: list[Interval], slots: dict[int, int]) -> list[tuple[int, int]]:
    pairs = combinations([each for each in intervals if each[0] in slots], 2)
    return [
        (one[0], other[0])
        for one, other in pairs
        if slots[one[0]] == slots[other[0]] and one[1] < other[2] and other[1] < one[2]
    ]


@given(INTERVALS)
def test_no_slot_has_two_requests_at_once_and_none_is_wasted(intervals: list[Interval]) -> None:
    slots = assign_slots(intervals)
    assert sorted(slots) == sorted(key for key, _, _ in intervals)
    assert overlapping(intervals, slots) == []
    for key, start, _ in intervals:
        running = sum(low <= start < high for _, low, high in intervals if (low, high) != (start, start))
        assert slots[key] <= running


@given(INTERVALS, st.floats(0, 60))
def test_a_request_keeps_its_slot_while_the_window_moves(intervals: list[Interval], left: float) -> None:
    first = assign_slots([each for each in intervals if each[1] <= left + 20])
    later = [each for each in intervals if each[2] >= left]
    moved = assign_slots(later, known=first)
    assert all(moved[key] == first[key] for key, _, _ in later if key in first)
    assert sorted(moved) == sorted(key for key, _, _ in later)
    assert overlapping(later, moved) == []


@given(INTERVALS)
def test_later_requests_do_not_change_earlier_slots(intervals: list[Interval]) -> None:
    ordered = sorted(intervals, key=lambda each: (each[1], each[0]))
    half = ordered[: len(ordered) // 2]
    whole = assign_slots(ordered)
    assert assign_slots(half) == {key: whole[key] for key, _, _ in half}


def test_a_free_slot_is_used_again_from_the_lowest() -> None:
    intervals = [(1, 0.0, 4.0), (2, 1.0, 9.0), (3, 2.0, 3.0), (4, 3.0, 5.0), (5, 4.0, 6.0)]
    assert assign_slots(intervals) == {1: 0, 2: 1, 3: 2, 4: 2, 5: 0}


def test_a_request_that_is_recorded_late_finds_a_slot_free_for_all_of_its_time() -> None:
    before = assign_slots([(2, 2.0, 3.0), (3, 4.0, 5.0)])
    assert before == {2: 0, 3: 0}
    assert assign_slots([(1, 1.0, 6.0), (2, 2.0, 3.0), (3, 4.0, 5.0)], known=before) == {1: 1, 2: 0, 3: 0}
