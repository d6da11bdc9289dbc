"""The number of requests in flight, of runs small enough to count by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from servetop.analysis.summary.in_flight_timeline import InFlightTimeline

NAN = float("nan")
Span = tuple[float, float]


def levels(requests: list[Span], at: list[float]) -> list[int]:
    sent, ended = (np.array([each[i] for each in requests], dtype=np.float64) for i in (0, 1))
    return [int(level) for level in InFlightTimeline.of(sent, ended).at(np.array(at))]


def test_requests_that_were_never_sent_are_never_in_flight() -> None:
    cancelled_in_the_queue = (NAN, 1.5)
    assert levels([(1.0, 2.0), cancelled_in_the_queue, cancelled_in_the_queue], [1.2, 1.7, 3.0]) == [1, 1, 0]


def test_a_request_without_an_end_stays_in_flight() -> None:
    assert levels([(1.0, NAN), (1.0, 2.0), (NAN, NAN)], [1.5, 2.5, 9.0]) == [2, 1, 1]


def test_a_request_that_ended_when_it_was_sent_leaves_the_level_as_it_was() -> None:
    assert levels([(1.0, 1.0), (2.0, 1.5)], [0.5, 1.0, 1.7, 2.0]) == [0, 0, 0, 0]


TIMES = st.one_of(st.just(NAN), st.floats(0.0, 100.0))


@given(st.lists(st.tuples(TIMES, TIMES), max_size=30), st.floats(0.0, 100.0))
def test_the_level_is_the_number_of_requests_that_were_sent_and_have_not_ended(requests: list[Span], at: float) -> None:
    expected = sum(sent <= at and not max(ended, sent) <= at for sent, ended in requests if not np.isnan(sent))
    assert levels(requests, [at]) == [expected]
