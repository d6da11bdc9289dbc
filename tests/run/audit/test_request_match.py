"""The requests of a client's result are found among those that the server saw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servetop.core.clock import ClockAnchor
from servetop.run.audit.request_match import MatchedBy, RequestMatch, match_requests

SERVER = ClockAnchor(origin_ns=7_000_000_000, wall_epoch_s=1_700_000_000.0)
NEITHER = ClockAnchor(origin_ns=0, wall_epoch_s=0.0)
SENT = np.array([0.0, 0.4, 0.5, 1.1])


def match(arrived: object, client: ClockAnchor = NEITHER, *, sent: object = SENT, known: bool = True) -> RequestMatch:
    return match_requests(
        np.asarray(arrived, float), np.asarray(sent, float), server=SERVER, client=client, times_known=known
    )


@given(
    gaps=st.lists(st.floats(0.001, 2.0), min_size=2, max_size=30),
    before=st.integers(0, 5),
    after=st.integers(0, 5),
    late=st.floats(0.0, 0.01),
)
def test_requests_are_found_by_one_clock_whatever_is_before_and_after(
    gaps: list[float], before: int, after: int, late: float
) -> None:
    sent = np.cumsum(gaps)
    early, later = np.arange(-before, 0.0), sent[-1] + 1.0 + np.arange(after)
    arrived = np.concatenate([early, sent + late, later]) + 3.0  # 3 s after the server's origin
    found = match(arrived, ClockAnchor(origin_ns=10_000_000_000, wall_epoch_s=0.0), sent=sent)
    assert found.matched_by is MatchedBy.CLOCK
    assert found.count == sent.size
    assert found.shift == pytest.approx(3.0)
    if late < min(gaps) / 2:
        assert found.first == before


def test_unix_time_is_used_where_the_client_has_no_monotonic_clock() -> None:
    found = match([2.0, 5.001, 5.401, 5.501, 6.101], ClockAnchor(origin_ns=0, wall_epoch_s=1_700_000_005.0))
    assert (found.matched_by, found.first) == (MatchedBy.CLOCK, 1)
    assert found.shift == pytest.approx(5.0)


def test_a_clock_that_is_not_the_servers_is_not_used() -> None:
    found = match([0.1, 3.0, 3.4, 3.5, 4.1], ClockAnchor(origin_ns=10**18, wall_epoch_s=9.0))
    assert found == RequestMatch(matched_by=MatchedBy.INTERVALS, first=1, count=4, shift=None)


def test_requests_at_a_fixed_rate_are_taken_from_the_end() -> None:
    found = match([1.0, 2.0, 3.0, 4.0, 5.0], sent=[0.0, 1.0, 2.0])
    assert (found.matched_by, found.first) == (MatchedBy.INTERVALS, 2)


def test_derived_times_are_not_compared() -> None:
    assert match([0.0, 9.0, 9.1, 9.2, 9.3], known=False) == RequestMatch(matched_by=MatchedBy.ORDER, first=1, count=4)


@pytest.mark.parametrize(("arrived", "sent"), [([0.0, 0.1], SENT), ([], SENT), ([0.0], [])])
def test_a_client_with_more_requests_than_the_server_is_not_matched(arrived: list[float], sent: object) -> None:
    found = match(arrived, sent=sent)
    assert (found.matched_by, found.first, found.count) == (MatchedBy.NOTHING, 0, len(arrived))
