"""Requests in flight: the concurrency limit, and the request timeout in order of submission."""

from typing import Any, cast

import pytest

from servetop.loadgen.request.request_state import RequestState
from servetop.loadgen.sender.in_flight import InFlightRequests


def requests(count: int) -> list[RequestState]:
    return [cast("RequestState", object()) for _ in range(count)]


def test_the_concurrency_limit_leaves_room_until_it_is_reached() -> None:
    in_flight = InFlightRequests()
    first, second = requests(2)
    in_flight.add(first, 1.0)
    assert [in_flight.has_room(limit) for limit in (None, 1, 2)] == [True, False, True]
    in_flight.add(second, 1.1)
    in_flight.remove(first)
    in_flight.remove(first)
    assert (in_flight.count, in_flight.empty) == (1, False)


@pytest.mark.parametrize(("at", "expected"), [(10.9, 0), (11.0, 1), (12.5, 2), (99.0, 3)])
def test_requests_time_out_in_order_of_submission(at: float, expected: int) -> None:
    in_flight: Any = InFlightRequests()
    submitted = requests(3)
    for number, request in enumerate(submitted):
        in_flight.add(request, 1.0 + number)
    assert list(in_flight.overdue(at, timeout=10.0)) == submitted[:expected]
    assert in_flight.snapshot() == tuple(submitted[expected:])
