"""Every request number has at most one owner, also while the working senders change."""

from hypothesis import given
from hypothesis import strategies as st

from servetop.loadgen.sender.ownership import Ownership, part_of


@given(st.integers(0, 1000), st.integers(1, 16))
def test_the_parts_add_up_and_differ_by_one_at_most(count: int, among: int) -> None:
    parts = [part_of(count, rank, among) for rank in range(among)]
    assert sum(parts) == count
    assert max(parts) - min(parts) <= 1


@given(st.sets(st.integers(0, 5), min_size=1), st.integers(0, 20), st.integers(0, 10))
def test_a_number_has_one_owner_except_in_the_unused_gap(working: set[int], unused_from: int, gap: int) -> None:
    senders = [Ownership(worker, tuple(range(6)), first=0) for worker in range(6)]
    first = unused_from + gap
    for each in senders:
        each.change(tuple(sorted(working)), unused_from=unused_from, first=first)
    for number in range(first + 10):
        owners = [worker for worker, each in enumerate(senders) if each.owns(number)]
        assert len(owners) == (0 if unused_from <= number < first else 1)
        assert number < first or set(owners) <= working


def test_numbers_before_the_first_have_no_owner() -> None:
    assert not Ownership(0, (0,), first=5).owns(4)
